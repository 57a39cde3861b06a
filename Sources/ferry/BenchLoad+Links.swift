internal import FerryCore
internal import FerryIO
internal import FerryWire

/// Push frames, one after the other, whose bytes are all fixed but id, device, and stamp.
struct BenchLinkTemplate {
    private let variants: [[UInt8]]
    private let idOffset: Int
    private let stampOffset: Int

    init(_ payload: BenchPayload, payloadBytes: Int) {
        let run = Identifier128(bytes: Cryptography.random(16)) ?? Identifier128(high: 1, low: 1)
        variants = payload.variants(payloadBytes).map {
            LinkPushFrame(id: run, cid: CID(run), payload: $0).encoded()
        }
        stampOffset = variants[0].count - payloadBytes
        // Type and length stand before the body, which begins with the ids.
        let body = 16 + 16 + 4 + ByteWriter.varintSize(UInt64(payloadBytes)) + payloadBytes
        idOffset = variants[0].count - body
    }

    func append(to output: inout [UInt8], number: UInt64, device: Identifier128, due: UInt64) {
        let start = output.count
        output.append(contentsOf: variants[Int(number % UInt64(variants.count))])
        output.withUnsafeMutableBytes { output in
            // The run's part of the id stays in its first half.
            output.storeBytes(of: number.bigEndian, toByteOffset: start + idOffset + 8, as: UInt64.self)
            output.storeBytes(of: device.high.bigEndian, toByteOffset: start + idOffset + 16, as: UInt64.self)
            output.storeBytes(of: device.low.bigEndian, toByteOffset: start + idOffset + 24, as: UInt64.self)
            BenchStamp.write(due, to: output, at: start + stampOffset)
        }
    }
}

/// Links as the bench's way in.
extension BenchLoad {
    mutating func openLinks(_ address: SocketAddress) throws(BenchFailure) {
        linkTemplate = BenchLinkTemplate(settings.payload, payloadBytes: settings.payloadBytes)
        for index in 0..<settings.backends {
            let isOpen: Bool
            do throws(SystemError) {
                let descriptor = try Socket.connect(to: address)
                isOpen = try BenchLinkOpening.open(descriptor, settings)
                try poller.add(descriptor, .readable, token: Self.backendBit | UInt64(index))
                backends.append(BenchBackend(descriptor: descriptor))
            } catch {
                throw BenchFailure(sentence: error.description)
            }
            guard isOpen else {
                throw BenchFailure(sentence: "the gateway did not open a link at \(address) for \(settings.appID)")
            }
        }
    }

    /// A link says that it is there also in phases in which it has nothing to push.
    mutating func keepLinksAlive() {
        guard linkTemplate != nil, now >= linksSpeakAt else { return }
        linksSpeakAt = now + WireLimits.linkKeepAliveSeconds * 500_000_000
        for index in backends.indices where !backends[index].isGone {
            backends[index].output += [FrameType.ping.rawValue, 0]
            flush(index)
        }
    }

    /// Takes whole frames off the front and says how many bytes they had.
    mutating func readLinkAnswers(_ index: Int, _ bytes: UnsafeRawBufferPointer) -> Int {
        let received = BenchClock.nanoseconds
        var offset = 0
        while true {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
            guard
                case .frame(let type, let body, let size) = FrameSplitter.split(
                    rest, bodyLimit: Limits.gatewayFrameBytes)
            else { return offset }
            offset += size
            guard let frame = try? LinkGatewayFrame.decode(type: type, body: body) else {
                problems.note("what is no frame came over a link")
                continue
            }
            switch frame {
            case .answer(let answer): take(answer, index, received)
            case .close(let close): problems.note("the gateway closed a link: \(close.code)")
            case .challenge, .welcome, .ping, .pong, .unknownSkippable: break
            }
        }
    }

    private mutating func take(_ answer: LinkAnswerFrame, _ index: Int, _ received: UInt64) {
        var refusals = answer.refusals[...]
        while backends[index].linkAnswered < answer.upTo, let due = backends[index].answered() {
            backends[index].linkAnswered += 1
            if let refusal = refusals.first, refusal.number == backends[index].linkAnswered {
                refusals.removeFirst()
                tally.refused += 1
                problems.note("code \(refusal.code): \(refusal.text.prefix(80))")
            } else {
                tally.accepted += 1
                answers.record(received > due ? received - due : 0)
            }
        }
    }
}

/// The handshake of one link, one frame after the other.
private enum BenchLinkOpening {
    /// false: the gateway did not say yes within ten seconds.
    static func open(_ descriptor: Int32, _ settings: BenchSettings) throws(SystemError) -> Bool {
        let poller = try Poller()
        try poller.add(descriptor, .writable, token: 0)
        guard poller.wait(milliseconds: 10_000) > 0, Socket.error(of: descriptor) == 0 else { return false }
        try poller.modify(descriptor, .readable, token: 0)
        let hello = HelloFrame(nonce: Bytes32(Cryptography.random(32)) ?? .zero)
        guard send(hello.encoded(), descriptor), let challenge = receive(.challenge, descriptor, poller) else {
            return false
        }
        let handshake = BenchHandshake(hello: hello.body(), challenge: challenge)
        let login = handshake.prove(LinkLoginFrame(appID: settings.appID), masterSecret: settings.masterSecret)
        return send(login, descriptor) && receive(.linkWelcome, descriptor, poller) != nil
    }

    private static func send(_ bytes: [UInt8], _ descriptor: Int32) -> Bool {
        bytes.withUnsafeBytes { Socket.send(descriptor, $0) } == .moved(bytes.count)
    }

    /// The body of the next frame, if it is of this type.
    private static func receive(_ type: FrameType, _ descriptor: Int32, _ poller: borrowing Poller) -> [UInt8]? {
        var input: [UInt8] = []
        while poller.wait(milliseconds: 10_000) > 0 {
            var piece = [UInt8](repeating: 0, count: 4_096)
            guard case .moved(let count) = piece.withUnsafeMutableBytes({ Socket.receive(descriptor, into: $0) }) else {
                return nil
            }
            input += piece[..<count]
            let frame: (type: UInt8, body: [UInt8])? = input.withUnsafeBytes { bytes in
                guard case .frame(let type, let body, _) = FrameSplitter.split(bytes, bodyLimit: 4_096) else {
                    return nil
                }
                return (type, Array(body))
            }
            if let frame { return frame.type == type.rawValue ? frame.body : nil }
        }
        return nil
    }
}
