internal import FerryClientCore
internal import FerryCore
internal import FerryIO
internal import FerryWire
internal import Synchronization

/// Does what a client's state machine says: one thread, one socket, one timer.
struct ClientDriver: ~Copyable {
    private var machine: ClientStateMachine
    private let parts: DriverParts
    private let poller: Poller
    private let clock = WallClock()
    private var random = CryptographicRandom()
    private var connection: ClientConnection?
    /// Tells events of the present socket from those of sockets before it.
    private var connectionToken: UInt64 = 0
    private var proofs: HandshakeProofs
    private var drained: [ClientCommand] = []
    /// `stopped` may be lost with what was to be saved before it; the app waits for it all the same.
    private var hasToldEnd = false

    private static let commandsToken: UInt64 = 0
    /// How long the last bytes may take to leave, and the gateway to hang up, at the end.
    private static let farewell: Duration = .seconds(2)

    init(_ parts: DriverParts) throws(SystemError) {
        self.parts = parts
        machine = parts.machine
        proofs = HandshakeProofs(appSecret: parts.appSecret, cipher: .openSSL)
        let poller = try Poller()
        try poller.add(parts.commands.descriptor, .readable, token: Self.commandsToken)
        self.poller = poller
    }

    /// Returns when the machine has stopped.
    mutating func run() {
        handle(.started)
        while machine.phase != .stopped {
            let count = poller.wait(milliseconds: timeout())
            for index in 0..<count { dispatch(poller.event(index)) }
            if let deadline = machine.deadline, clock.now >= deadline { handle(.timerFired) }
            flush()
        }
        drop()
        if !hasToldEnd { parts.handler(.stopped(.requested)) }
    }

    private mutating func tell(_ notice: ClientNotice) {
        if case .stopped = notice { hasToldEnd = true }
        parts.handler(DeviceEvent(notice))
    }

    private func timeout() -> Int32 {
        guard let deadline = machine.deadline else { return -1 }
        let left = (deadline - clock.now).inMilliseconds
        return Int32(clamping: max(0, left))
    }

    private mutating func dispatch(_ event: (token: UInt64, readable: Bool, writable: Bool, hangup: Bool)) {
        if event.token == Self.commandsToken {
            drained.removeAll(keepingCapacity: true)
            parts.commands.drain(into: &drained)
            for command in drained { handle(Self.event(of: command)) }
            return
        }
        guard event.token == connectionToken else { return }
        switch connection?.progress(
            readable: event.readable, hangup: event.hangup, poller, token: connectionToken)
        {
        case nil, .nothing: break
        case .connected: handle(.connected)
        case .received:
            handle(.bytesReceived)
            takeFrames()
            handle(.readingEnded)
        case .lost(let reason): lose(reason)
        }
    }

    private static func event(of command: ClientCommand) -> ClientEvent {
        switch command {
        case .stop: .stopRequested
        case .foreground: .enteredForeground
        case .background: .enteredBackground
        case .token(let change): .deviceTokenChanged(change)
        }
    }

    /// Takes the whole frames that have come, until the connection is given up.
    private mutating func takeFrames() {
        let token = connectionToken
        guard let inbox = connection?.takeInbox() else { return }
        var offset = 0
        while token == connectionToken {
            let (event, consumed) = inbox.withUnsafeBytes { bytes in
                nextEvent(UnsafeRawBufferPointer(rebasing: bytes[offset...]))
            }
            guard let event else {
                connection?.putBack(Array(inbox[offset...]))
                return
            }
            offset += consumed
            handle(event)
            if parts.signals.isStopAsked.load(ordering: .acquiring) { handle(.stopRequested) }
        }
    }

    private mutating func nextEvent(_ bytes: UnsafeRawBufferPointer) -> (ClientEvent?, consumed: Int) {
        switch FrameSplitter.split(bytes, bodyLimit: Limits.gatewayFrameBytes) {
        case .incomplete: return (nil, 0)
        case .tooLarge: return (.malformedReceived(WireError(.frameTooLarge, "a frame is too large")), 0)
        case .malformed: return (.malformedReceived(WireError(.protocolError, "a frame's length is malformed")), 0)
        case .frame(let type, let body, let consumed):
            do throws(WireError) {
                let frame = try GatewayFrame.decode(type: type, body: body)
                if case .challenge = frame { proofs.received(challenge: body) }
                let secret = machine.record.identity?.secret.bytes
                let isProven = proofs.isProven(frame, body: body, deviceSecret: secret)
                return (machine.event(for: frame, isProven: isProven, inflate: Inflation.inflate), consumed)
            } catch {
                return (.malformedReceived(error), consumed)
            }
        }
    }

    private mutating func handle(_ event: ClientEvent) {
        let actions = machine.handle(event, now: clock.now, using: &random)
        for action in actions {
            if let failure = perform(action) {
                // What stands after an action that failed depends on it.
                handle(failure)
                return
            }
        }
    }

    /// Does one thing; answers the event that it could not be done.
    private mutating func perform(_ action: ClientAction) -> ClientEvent? {
        switch action {
        case .connect: return connect()
        case .send(let frame):
            if case .hello(let hello) = frame { proofs.sent(hello) }
            connection?.enqueue(frame.encoded())
        case .prove(let frame):
            let secret = machine.record.identity?.secret.bytes
            guard let proven = proofs.prove(frame, deviceSecret: secret) else { break }
            connection?.enqueue(proven.encoded())
        case .save(let record):
            do {
                try parts.store.save(StateCodec.encode(record, appID: machine.configuration.appID))
            } catch {
                return .savingFailed("\(error)")
            }
        case .hand(let push):
            // What only a later version knows counts as handed over: it would come again for ever.
            if let event = DeviceEvent(push) { parts.handler(event) }
            handle(.handed(push.seq))
        case .handGap(let gap):
            parts.handler(.gap(.init(gap)))
            handle(.handed(gap.seq))
        case .close(let flushing):
            if flushing { connection?.sayFarewell(until: clock.now + Self.farewell, clock: clock) }
            drop()
        case .tell(let notice): tell(notice)
        }
        return nil
    }

    private mutating func connect() -> ClientEvent? {
        drop()
        proofs = HandshakeProofs(appSecret: parts.appSecret, cipher: .openSSL)
        do throws(SystemError) {
            connection = try ClientConnection(to: parts.server, poller, token: connectionToken)
            return nil
        } catch {
            connection = nil
            return .connectionLost(error.description)
        }
    }

    private mutating func flush() {
        guard let code = connection?.flush(poller, token: connectionToken) else { return }
        lose(SystemError("send", code).description)
    }

    private mutating func lose(_ reason: String) {
        drop()
        handle(.connectionLost(reason))
    }

    private mutating func drop() {
        connection?.close(poller)
        connection = nil
        connectionToken += 1
    }
}
