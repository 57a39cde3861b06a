internal import FerryClientCore
internal import FerryCore
internal import FerryWire
internal import Testing

/// What a client does with compressed payloads; here "inflating" doubles each byte, so that it can be told apart.
struct CompressionTests {
    private func client(takes: Bool = true, promises: Bool = true) throws -> Player {
        let record = ClientRecord(
            identity: Fixtures.identity, installationKey: .zero, epoch: Fixtures.epoch, lastSeq: Seq(1))
        let configuration = ClientConfiguration(
            appID: try Fixtures.appID(), wishes: AttachWishes(capabilities: takes ? .compressedPayloads : []))
        var player = Player(ClientStateMachine(configuration: configuration, record: record))
        player.play([.started, .connected])
        #expect(saidCapability(player.play(Fixtures.challenge)) == takes)
        player.play(welcome(promises: promises))
        return player
    }

    private func welcome(promises: Bool) -> ClientEvent {
        let frame = WelcomeFrame(
            sessionID: SessionID(rawValue: 1), epoch: Fixtures.epoch, isResumed: true, compressesPayloads: promises)
        return .frameReceived(.welcome(frame), isProven: true)
    }

    private func saidCapability(_ actions: [ClientAction]) -> Bool? {
        for case .prove(.login(let login)) in actions {
            return login.wishes.capabilities.contains(.compressedPayloads)
        }
        return nil
    }

    private func compressed(_ seq: UInt64, _ payload: [UInt8]) -> GatewayFrame {
        .push(
            PushFrame(
                seq: Seq(seq), flags: .compressed, messageID: MessageID(Identifier128(high: 0, low: seq)), taskID: "t",
                payload: payload))
    }

    private func doubled(_ stream: UnsafeRawBufferPointer, _ count: Int) -> [UInt8]? {
        let content = stream.flatMap { [$0, $0] }
        return content.count == count ? content : nil
    }

    @Test func `the app gets the original, and an ack counts the original's bytes`() throws {
        var player = try client()
        // Half of a window of 262,144 bytes, in few bytes on the wire.
        let stream = [UInt8](repeating: 7, count: 32_768)
        for seq in [2, 3] as [UInt64] {
            let event = player.machine.event(
                for: compressed(seq, [0x80, 0x80, 4] + stream), isProven: false, inflate: doubled)
            guard case .hand(let push)? = player.play(event).first else {
                Issue.record("nothing is handed over")
                return
            }
            #expect(push.payload == stream + stream)
            let actions = player.play(.handed(Seq(seq)))
            #expect(actions.isEmpty == (seq == 2))
        }
    }

    @Test(arguments: [(false, true), (true, false), (false, false)])
    func `a compressed payload that one side did not agree to ends the connection`(
        takes: Bool, promises: Bool
    ) throws {
        var player = try client(takes: takes, promises: promises)
        #expect(!player.machine.isCompressionAgreed)
        let event = player.machine.event(for: compressed(2, [2, 1]), isProven: false, inflate: doubled)
        guard case .unpackingFailed(let error) = event else {
            Issue.record("it was taken: \(event)")
            return
        }
        #expect(error.code == .protocolError)
        #expect(player.play(event).first == .close(flushing: false))
    }

    /// A client that counted the message before it could read it took what came again for a repeat, and lost it.
    @Test func `a damaged payload is neither handed over nor acknowledged, and is asked for as it is`() throws {
        var player = try client()
        let event = player.machine.event(for: compressed(2, [3, 1]), isProven: false, inflate: doubled)
        let actions = player.play(event)
        #expect(actions.first == .close(flushing: false))
        #expect(!actions.contains { if case .hand = $0 { true } else { false } })
        player.playTimer()
        player.play(.connected)
        #expect(saidCapability(player.play(Fixtures.challenge)) == false)
        player.play(welcome(promises: false))
        #expect(Spelling.of(player.play(Fixtures.push(2))) == "hand 2")
    }

    @Test func `compression stays agreed across background and foreground, and ends with the connection`() throws {
        var player = try client()
        #expect(player.machine.isCompressionAgreed)
        player.play([.enteredBackground, .enteredForeground, Fixtures.resumed(true)])
        #expect(player.machine.isCompressionAgreed)
        player.play(.connectionLost("x"))
        #expect(!player.machine.isCompressionAgreed)
    }

    @Test func `lengths are judged before anything is inflated`() throws {
        let player = try client()
        for (payload, code) in [
            ([], .protocolError), ([0x80], .protocolError), ([0x80, 0], .protocolError),
            ([0x81, 0x80, 4], .fieldOutOfRange), ([UInt8](repeating: 0xff, count: 9) + [1], .fieldOutOfRange),
        ] as [([UInt8], CloseCode)] {
            let event = player.machine.event(for: compressed(2, payload), isProven: false) { _, _ in
                Issue.record("it was inflated")
                return []
            }
            #expect(event == .unpackingFailed(event.wireError ?? WireError(.stopping, "")))
            #expect(event.wireError?.code == code)
        }
    }
}

extension ClientEvent {
    fileprivate var wireError: WireError? { if case .unpackingFailed(let error) = self { error } else { nil } }
}
