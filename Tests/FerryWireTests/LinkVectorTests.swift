internal import FerryCore
internal import FerryWire
internal import Foundation
internal import Testing

/// Reads `protocol-spec/vectors/link`: what the text on the backend link says in bytes.
@Suite(.enabled(if: ProtocolSpec.folder != nil))
struct LinkVectorTests {
    private enum Outcome: Equatable {
        case fields([String: String])
        case skipped
        case failed(UInt16)
        case unfinished
    }

    private static let files = ["link-login", "link-welcome", "link-push", "link-answer", "framing"]

    private func cases() throws -> [[String: Any]] {
        try Self.files.flatMap {
            try Samples.unwrap(try ProtocolSpec.json("vectors/link/\($0).json")["cases"] as? [[String: Any]])
        }
    }

    private func outcome(_ bytes: [UInt8], toGateway: Bool) -> (Outcome, encoded: [UInt8]) {
        let limit = toGateway ? Limits.linkFrameBytes : Limits.gatewayFrameBytes
        return bytes.withUnsafeBytes { raw in
            switch FrameSplitter.split(raw, bodyLimit: limit) {
            case .incomplete: return (.unfinished, [])
            case .tooLarge: return (.failed(CloseCode.frameTooLarge.rawValue), [])
            case .malformed: return (.failed(CloseCode.protocolError.rawValue), [])
            case .frame(let type, let body, let consumed):
                guard consumed == raw.count else { return (.unfinished, []) }
                do throws(WireError) {
                    if toGateway {
                        let frame = try LinkBackendFrame.decode(type: type, body: body)
                        if case .unknownSkippable = frame { return (.skipped, []) }
                        return (.fields(Self.fields(frame)), frame.encoded())
                    }
                    let frame = try LinkGatewayFrame.decode(type: type, body: body)
                    if case .unknownSkippable = frame { return (.skipped, []) }
                    return (.fields(Self.fields(frame)), frame.encoded())
                } catch {
                    return (.failed(error.code.rawValue), [])
                }
            }
        }
    }

    @Test func `every vector of the link is read, skipped or refused as it says`() throws {
        let cases = try cases()
        #expect(cases.count > 150)
        for fields in cases {
            let name = "\(fields["name"] ?? "")"
            let bytes = try ProtocolSpec.bytes(fields["hex"])
            let toGateway = fields["direction"] as? String == "linkToGateway"
            let (outcome, encoded) = outcome(bytes, toGateway: toGateway)
            if let code = fields["mustFail"] as? Int {
                #expect(outcome == .failed(UInt16(code)), "\(name)")
            } else if fields["skipped"] as? Bool == true {
                #expect(outcome == .skipped, "\(name)")
            } else {
                let frame = try #require(fields["frame"] as? [String: Any])
                #expect(outcome == .fields(try Self.fields(frame)), "\(name)")
                if fields["decodeOnly"] as? Bool != true { #expect(encoded == bytes, "\(name)") }
                for end in 0..<min(bytes.count, 600) {
                    #expect(self.outcome(Array(bytes[..<end]), toGateway: toGateway).0 == .unfinished, "\(name) \(end)")
                }
            }
        }
    }

    @Test func `no change of a byte of a push or an answer does more than refuse it`() throws {
        var refused = 0
        for fields in try cases() where fields["frame"] != nil {
            let bytes = try ProtocolSpec.bytes(fields["hex"])
            guard bytes.count < 400 else { continue }
            for index in bytes.indices {
                for value in [0, 1, 0x7f, 0x80, 0xff, bytes[index] ^ 1] as [UInt8] {
                    var changed = bytes
                    changed[index] = value
                    for toGateway in [true, false] {
                        if case .failed = outcome(changed, toGateway: toGateway).0 { refused += 1 }
                    }
                }
            }
        }
        #expect(refused > 5_000)
    }

    @Test func `the link's transcripts are the bytes that the proofs are made over`() throws {
        let cases = try #require(try ProtocolSpec.json("vectors/link/proofs.json")["cases"] as? [[String: Any]])
        var checked = 0
        for proof in cases.flatMap({ $0["proofs"] as? [[String: Any]] ?? [] }) {
            let texts = try #require(proof["bodies"] as? [String])
            let bodies = try texts.map { try #require(Hexadecimal.decode($0)) }
            let input = try ProtocolSpec.bytes(proof["input"])
            let isLogin = proof["label"] as? String == "ferry/1 link-login"
            let made =
                isLogin
                ? Transcript.linkLogin(hello: bodies[0], challenge: bodies[1], signedPart: bodies[2])
                : Transcript.linkWelcome(
                    hello: bodies[0], challenge: bodies[1], login: bodies[2], signedPart: bodies[3])
            #expect(made == input)
            checked += 1
        }
        #expect(checked == 4)
    }

    @Test func `what a push's content is compared by is everything behind its id`() {
        let push = LinkPushFrame(
            id: Identifier128(high: 1, low: 2), cid: CID(Identifier128(high: 3, low: 4)), payload: [5])
        var renamed = push
        renamed.id.low = 9
        var changes = [push, push, push, push, push, push]
        changes[0].cid = CID(Identifier128(high: 3, low: 5))
        changes[1].flags = .liveOnly
        changes[2].ttl = 1
        changes[3].alert = [1]
        changes[4].collapseID = "x"
        changes[5].payload = [6]
        func content(_ push: LinkPushFrame) -> [UInt8] {
            push.body().withUnsafeBytes { Array(LinkPushFrame.content(of: $0)) }
        }
        #expect(content(renamed) == content(push))
        for change in changes { #expect(content(change) != content(push)) }
        #expect(
            [1, 2].withUnsafeBytes { LinkPushFrame.content(of: UnsafeRawBufferPointer(rebasing: $0[..<3])).count } == 0)
    }

    // MARK: - Fields

    private static func fields(_ frame: LinkBackendFrame) -> [String: String] {
        switch frame {
        case .hello: ["type": "hello"]
        case .login(let login):
            [
                "type": "link-login", "appId": login.appID.text, "capabilities": "\(login.capabilities)",
                "proof": login.proof.hex,
            ]
        case .push(let push):
            [
                "type": "link-push", "id": push.id.hex, "cid": push.cid.description, "flags": "\(push.flags.rawValue)",
                "ttl": "\(push.ttl)", "alert": Hexadecimal.encode(push.alert), "collapseId": push.collapseID,
                "payload": Hexadecimal.encode(push.payload),
            ]
        case .ping: ["type": "ping"]
        case .pong: ["type": "pong"]
        case .unknownSkippable: [:]
        }
    }

    private static func fields(_ frame: LinkGatewayFrame) -> [String: String] {
        switch frame {
        case .challenge: ["type": "challenge"]
        case .welcome(let welcome):
            [
                "type": "link-welcome", "serverTime": "\(welcome.serverTime)", "keepAlive": "\(welcome.keepAlive)",
                "window": "\(welcome.window)", "windowBytes": "\(welcome.windowBytes)", "proof": welcome.proof.hex,
            ]
        case .answer(let answer):
            [
                "type": "link-answer", "upTo": "\(answer.upTo)",
                "refusals": answer.refusals.map { "\($0.number) \($0.code) \($0.text)" }.joined(separator: "\n"),
            ]
        case .ping: ["type": "ping"]
        case .pong: ["type": "pong"]
        case .close: ["type": "close"]
        case .unknownSkippable: [:]
        }
    }

    private static func fields(_ object: [String: Any]) throws -> [String: String] {
        var fields: [String: String] = [:]
        for (name, value) in object {
            switch name {
            case "extensions": break
            case "refusals":
                let refusals = try Samples.unwrap(value as? [[String: Any]])
                fields[name] = refusals.map { "\(text($0["number"])) \(text($0["code"])) \(text($0["text"]))" }
                    .joined(separator: "\n")
            case "alert", "payload": fields[name] = Hexadecimal.encode(try ProtocolSpec.bytes(value))
            default: fields[name] = text(value)
            }
        }
        return fields
    }

    private static func text(_ value: Any?) -> String { value as? String ?? (value as? NSNumber)?.stringValue ?? "" }
}
