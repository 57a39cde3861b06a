internal import FerryClientCore
package import FerryCore
package import FerryIO
internal import FerryWire

/// A message for one device over a link.
package struct LinkMessage: Sendable {
    /// The sender's name for it, such as the number of a line.
    package var tag: UInt64
    package var id: Identifier128
    package var cid: CID
    package var payload: [UInt8]
    /// Milliseconds; nil for the default.
    package var ttl: UInt64?
    package var isLiveOnly = false
    /// The body for APNs; empty for the gateway's own.
    package var alert: [UInt8] = []
    package var collapseID = ""

    package init(tag: UInt64, id: Identifier128, cid: CID, payload: [UInt8]) {
        self.tag = tag
        self.id = id
        self.cid = cid
        self.payload = payload
    }
}

/// What a link's sender tells it.
package enum LinkInput: Sendable {
    case messages([LinkMessage])
    /// No more messages.
    case ended
    case stop
}

/// What a link tells its sender.
package enum LinkReport: Sendable {
    case opened
    case accepted(Int)
    case refused(tag: UInt64, id: Identifier128, code: UInt64, text: String)
    /// The link is gone and comes back; what is unanswered is then sent again.
    case lost(String)
    /// More messages are of use; told once for each `messages` that came, and at the start.
    case wantsMessages
    /// Once a second: what is out on the link, and what waits since the gateway had no room.
    case second(sent: Int, heldBack: Int)
    /// All have their answers.
    case finished
    /// Nothing more will be tried; nil where the sender asked for it.
    case stopped(String?, unanswered: [(tag: UInt64, id: Identifier128)])
}

/// A backend's side of a link: one socket and one timer on the thread that calls `run`.
package struct LinkClient: ~Copyable {
    private var machine: LinkClientStateMachine
    private let server: SocketAddress
    private let masterSecret: [UInt8]
    private let input: Mailbox<LinkInput>
    private let report: (LinkReport) -> Void
    private let poller: Poller
    private let clock = WallClock()
    private var random = CryptographicRandom()
    private var connection: ClientConnection?
    private var connectionToken: UInt64 = 1
    private var drained: [LinkInput] = []
    /// Batches that were asked for and have not come.
    private var isAsking = false

    // The bodies of the handshake as they travelled.
    private var hello: [UInt8] = []
    private var challenge: [UInt8] = []
    private var login: [UInt8] = []

    private static let inputToken: UInt64 = 0

    package init(
        to server: SocketAddress, appID: AppID, masterSecret: String, input: Mailbox<LinkInput>,
        report: @escaping (LinkReport) -> Void
    ) throws(SystemError) {
        let poller = try Poller()
        try poller.add(input.descriptor, .readable, token: Self.inputToken)
        machine = LinkClientStateMachine(appID: appID)
        self.server = server
        self.masterSecret = Array(masterSecret.utf8)
        self.input = input
        self.report = report
        self.poller = poller
    }

    /// Returns when everything has its answer, or nothing more will be tried.
    package mutating func run() {
        handle(.started)
        var nextSecond = clock.now + .seconds(1)
        while machine.phase != .ended {
            if machine.wantsPushes, !isAsking {
                isAsking = true
                report(.wantsMessages)
            }
            let until = min(machine.deadline ?? nextSecond, nextSecond)
            let count = poller.wait(milliseconds: Int32(clamping: max(0, (until - clock.now).inMilliseconds)))
            for index in 0..<count { dispatch(poller.event(index)) }
            if let deadline = machine.deadline, clock.now >= deadline { handle(.timerFired) }
            if let code = connection?.flush(poller, token: connectionToken) {
                lose(SystemError("send", code).description)
            }
            if clock.now >= nextSecond {
                nextSecond = clock.now + .seconds(1)
                report(.second(sent: machine.sent, heldBack: machine.heldBack))
            }
        }
        drop()
    }

    private mutating func dispatch(_ event: (token: UInt64, readable: Bool, writable: Bool, hangup: Bool)) {
        if event.token == Self.inputToken {
            drained.removeAll(keepingCapacity: true)
            input.drain(into: &drained)
            for input in drained { take(input) }
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
        case .lost(let reason): lose(reason)
        }
    }

    private mutating func take(_ input: LinkInput) {
        switch input {
        case .messages(let messages):
            isAsking = false
            handle(.queued(messages.map { LinkOutgoing(tag: $0.tag, $0.frame) }))
        case .ended: handle(.inputEnded)
        case .stop: handle(.stopRequested)
        }
    }

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
        }
    }

    private mutating func nextEvent(_ bytes: UnsafeRawBufferPointer) -> (LinkClientEvent?, consumed: Int) {
        switch FrameSplitter.split(bytes, bodyLimit: Limits.gatewayFrameBytes) {
        case .incomplete: return (nil, 0)
        case .tooLarge: return (.malformedReceived(WireError(.frameTooLarge, "a frame is too large")), 0)
        case .malformed: return (.malformedReceived(WireError(.protocolError, "a frame's length is malformed")), 0)
        case .frame(let type, let body, let consumed):
            do throws(WireError) {
                let frame = try LinkGatewayFrame.decode(type: type, body: body)
                if case .challenge = frame { challenge = Array(body) }
                return (.frameReceived(frame, isProven: isProven(frame, body)), consumed)
            } catch {
                return (.malformedReceived(error), consumed)
            }
        }
    }

    private func isProven(_ frame: LinkGatewayFrame, _ body: UnsafeRawBufferPointer) -> Bool {
        guard case .welcome(let welcome) = frame, let signed = SignedBody.signedPart(of: body) else { return false }
        let transcript = Transcript.linkWelcome(hello: hello, challenge: challenge, login: login, signedPart: signed)
        return Cryptography.isEqual(Cryptography.hmacSHA256(key: masterSecret, transcript), welcome.proof.bytes)
    }

    private mutating func handle(_ event: LinkClientEvent) {
        for action in machine.handle(event, now: clock.now, using: &random) {
            if let failure = perform(action) {
                handle(failure)
                return
            }
        }
    }

    /// Does one thing; answers the event that it could not be done.
    private mutating func perform(_ action: LinkClientAction) -> LinkClientEvent? {
        switch action {
        case .connect:
            drop()
            do throws(SystemError) {
                connection = try ClientConnection(to: server, poller, token: connectionToken)
            } catch {
                return .connectionLost(error.description)
            }
        case .send(let frame):
            if case .hello(let frame) = frame { hello = frame.body() }
            connection?.enqueue(frame.encoded())
        case .prove(var frame):
            let transcript = Transcript.linkLogin(hello: hello, challenge: challenge, signedPart: frame.signedPart())
            frame.proof = Bytes32(Cryptography.hmacSHA256(key: masterSecret, transcript)) ?? .zero
            login = frame.body()
            connection?.enqueue(frame.encoded())
        case .push(let frame): connection?.enqueue(frame)
        case .close: drop()
        case .tell(let notice): tell(notice)
        }
        return nil
    }

    private func tell(_ notice: LinkClientNotice) {
        switch notice {
        case .opened: report(.opened)
        case .accepted(let count): report(.accepted(count))
        case .refused(let push, let code, let text):
            report(.refused(tag: push.tag, id: push.id, code: code, text: text))
        case .lost(let reason, _): report(.lost(reason.description))
        case .finished: report(.finished)
        case .stopped(let reason, let unanswered):
            report(.stopped(reason?.description, unanswered: unanswered.map { ($0.tag, $0.id) }))
        }
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

extension LinkMessage {
    fileprivate var frame: LinkPushFrame {
        LinkPushFrame(
            id: id, cid: cid, flags: isLiveOnly ? .liveOnly : [], ttl: ttl ?? 0, alert: alert, collapseID: collapseID,
            payload: payload)
    }
}
