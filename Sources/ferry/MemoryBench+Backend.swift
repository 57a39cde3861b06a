internal import FerryCore
internal import FerryGateway
internal import FerryIO
internal import FerryWire

/// The one backend of a bench in memory: a link for single messages, and a connection for calls.
struct MemoryBenchBackend {
    var link: Int32 = -1
    var http: Int32 = -1
    var handshake: BenchHandshake?
    var isOpen = false
    var template: BenchLinkTemplate?
    var linkInput: [UInt8] = []
    var httpInput: [UInt8] = []
    /// The answer to the last call: its status and body.
    var answer: (status: Int, body: [UInt8])?
    /// Up to which number the link has answered.
    var answered: UInt64 = 0
    var output: [UInt8] = []
    /// When the link is to say something again.
    var speaksAt: UInt64 = 0

    func owns(_ line: Int32) -> Bool { line == link || line == http }
}

extension MemoryBench {
    mutating func openBackend() throws(BenchFailure) {
        backend.template = BenchLinkTemplate(.filler, payloadBytes: settings.payloadBytes)
        backend.link = network.open()
        let hello = HelloFrame(nonce: Bytes32(Cryptography.random(32)) ?? .zero)
        backend.handshake = BenchHandshake(hello: hello.body())
        network.peerSends(backend.link, hello.encoded())
        gateway.connectLink(backend.link, to: 0)
        while !backend.isOpen && !isStopped { try turn(wait: 1) }
    }

    /// The link says that it is there, as often as it was asked to.
    mutating func keepLinkAlive() {
        guard backend.isOpen, clock.nanoseconds >= backend.speaksAt else { return }
        backend.speaksAt = clock.nanoseconds + WireLimits.linkKeepAliveSeconds * 1_000_000_000
        network.peerSends(backend.link, [FrameType.ping.rawValue, 0])
    }

    mutating func backendNews(_ line: Int32, _ bytes: [UInt8], isOver: Bool) {
        if isOver {
            if line == backend.link { problems.note("the gateway closed the link") }
            network.peerCloses(line)
        }
        guard line == backend.link else {
            backend.httpInput += bytes
            backend.httpInput.withUnsafeBytes { input in
                guard let answer = BenchAnswer.read(input) else { return }
                backend.answer = (answer.status, Array(input[(answer.size - answer.bodySize)..<answer.size]))
            }
            if backend.answer != nil { backend.httpInput = [] }
            return
        }
        var input: [UInt8] = []
        swap(&input, &backend.linkInput)
        input += bytes
        var offset = 0
        input.withUnsafeBytes { bytes in
            while case .frame(let type, let body, let size) = FrameSplitter.split(
                UnsafeRawBufferPointer(rebasing: bytes[offset...]), bodyLimit: Limits.gatewayFrameBytes)
            {
                offset += size
                take(LinkFrameBytes(type: type, body: body))
            }
        }
        input.removeFirst(offset)
        backend.linkInput = input
    }

    private struct LinkFrameBytes {
        let type: UInt8
        let body: UnsafeRawBufferPointer
    }

    private mutating func take(_ bytes: LinkFrameBytes) {
        guard let frame = try? LinkGatewayFrame.decode(type: bytes.type, body: bytes.body) else {
            problems.note("what is no frame came over a link")
            return
        }
        switch frame {
        case .challenge:
            guard var handshake = backend.handshake else { return }
            handshake.challenge = Array(bytes.body)
            let login = LinkLoginFrame(appID: settings.app.id)
            network.peerSends(backend.link, handshake.prove(login, masterSecret: settings.app.masterSecret))
        case .welcome:
            backend.handshake = nil
            backend.isOpen = true
        case .answer(let answer):
            tally.refused += UInt64(answer.refusals.count)
            tally.accepted += answer.upTo - backend.answered - UInt64(answer.refusals.count)
            backend.answered = answer.upTo
            for refusal in answer.refusals { problems.note("code \(refusal.code): \(refusal.text.prefix(80))") }
        case .ping: network.peerSends(backend.link, [FrameType.pong.rawValue, 0])
        case .close(let close): problems.note("the gateway closed the link: \(close.code)")
        case .pong, .unknownSkippable: break
        }
    }

    /// Pushes to devices drawn from the first `count`, up to what may be on its way at once.
    mutating func publish(upTo limit: UInt64, among count: Int) {
        guard let template = backend.template else { return }
        let now = BenchClock.nanoseconds
        var output: [UInt8] = []
        swap(&output, &backend.output)
        while tally.published < limit, tally.outstanding < UInt64(settings.outstanding) {
            draw ^= draw << 13
            draw ^= draw >> 7
            draw ^= draw << 17
            let device = Int(truncatingIfNeeded: draw % UInt64(count))
            template.append(to: &output, number: tally.published, device: devices[device].cid, due: now)
            tally.published += 1
        }
        network.peerSends(backend.link, output)
        output.removeAll(keepingCapacity: true)
        swap(&output, &backend.output)
    }

    /// One call, over a connection of its own; what the gateway answered.
    mutating func call(_ path: String, token: String?, body: [UInt8]) throws(BenchFailure) -> (
        status: Int, body: [UInt8]
    ) {
        var head = "POST \(path) HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        head += "Content-Length: \(body.count)\r\n" + (token.map { "token: \($0)\r\n" } ?? "") + "\r\n"
        backend.answer = nil
        backend.http = network.open()
        gateway.connectBackend(backend.http, to: 0)
        network.peerSends(backend.http, Array(head.utf8) + body)
        while backend.answer == nil && !isStopped { try turn(wait: 1) }
        network.peerCloses(backend.http)
        backend.http = -1
        return backend.answer ?? (0, [])
    }
}
