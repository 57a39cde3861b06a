internal import FerryCore
internal import FerryWire
internal import Foundation
internal import Testing

/// Reads `protocol-spec/vectors`: what the protocol's text says in bytes.
@Suite(.enabled(if: ProtocolSpec.folder != nil))
struct VectorTests {
    private enum Outcome: Equatable {
        case fields([String: String])
        case skipped
        case failed(UInt16)
    }

    private func outcome(_ bytes: [UInt8], toGateway: Bool) -> (Outcome, encoded: [UInt8]) {
        let limit = toGateway ? Limits.deviceFrameBytes : Limits.gatewayFrameBytes
        return bytes.withUnsafeBytes { raw in
            switch FrameSplitter.split(raw, bodyLimit: limit) {
            case .incomplete: return (.failed(0), [])
            case .tooLarge: return (.failed(CloseCode.frameTooLarge.rawValue), [])
            case .malformed: return (.failed(CloseCode.protocolError.rawValue), [])
            case .frame(let type, let body, let consumed):
                guard consumed == raw.count else { return (.failed(0), []) }
                do throws(WireError) {
                    if toGateway {
                        let frame = try DeviceFrame.decode(type: type, body: body)
                        if case .unknownSkippable = frame { return (.skipped, []) }
                        return (.fields(FrameFields.of(frame)), frame.encoded())
                    }
                    let frame = try GatewayFrame.decode(type: type, body: body)
                    if case .unknownSkippable = frame { return (.skipped, []) }
                    return (.fields(FrameFields.of(frame)), frame.encoded())
                } catch {
                    return (.failed(error.code.rawValue), [])
                }
            }
        }
    }

    @Test func `every vector is read, skipped or refused as it says`() throws {
        let vectors = try ProtocolSpec.vectors()
        #expect(vectors.count > 200)
        for (file, fields) in vectors {
            let name = "\(file) \(fields["name"] ?? "")"
            let bytes = try ProtocolSpec.bytes(fields["hex"])
            let (outcome, encoded) = outcome(bytes, toGateway: fields["direction"] as? String == "toGateway")
            if let code = fields["mustFail"] as? Int {
                #expect(outcome == .failed(UInt16(code)), "\(name)")
            } else if fields["skipped"] as? Bool == true {
                #expect(outcome == .skipped, "\(name)")
            } else {
                let frame = try #require(fields["frame"] as? [String: Any])
                let expected = try FrameFields.of(frame)
                #expect(outcome == .fields(expected), "\(name)")
                let isCanonical =
                    fields["decodeOnly"] as? Bool != true
                    && frame["flags"] as? Int ?? 0 <= (frame["type"] as? String == "resumed" ? 1 : 3)
                    && FrameFields.hasOnlyKnownParts(frame) && !expected.values.contains { $0.contains("\u{fffd}") }
                if isCanonical { #expect(encoded == bytes, "\(name)") }
            }
        }
    }

    @Test func `transcripts are the bytes that the proofs are made over`() throws {
        let cases = try #require(try ProtocolSpec.json("vectors/proofs.json")["cases"] as? [[String: Any]])
        var checked = 0
        for proof in cases.flatMap({ $0["proofs"] as? [[String: Any]] ?? [] }) {
            let texts = try #require(proof["bodies"] as? [String])
            let bodies = try texts.map { try #require(Hexadecimal.decode($0)) }
            let input = try ProtocolSpec.bytes(proof["input"])
            let made: [UInt8]
            switch proof["label"] as? String {
            case "ferry/1 login":
                made = Transcript.login(hello: bodies[0], challenge: bodies[1], signedPart: bodies[2])
            case "ferry/1 register":
                made = Transcript.register(hello: bodies[0], challenge: bodies[1], signedPart: bodies[2])
            case "ferry/1 registered":
                made = Transcript.registered(
                    hello: bodies[0], challenge: bodies[1], register: bodies[2], signedPart: bodies[3])
            default:
                made = Transcript.welcome(
                    hello: bodies[0], challenge: bodies[1], request: bodies[2], signedPart: bodies[3])
            }
            #expect(made == input)
            checked += 1
        }
        #expect(checked >= 4)
    }
}
