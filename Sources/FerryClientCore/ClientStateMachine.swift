package import FerryCore
package import FerryWire

/// All decisions of a client: when to connect, what to say, what to hand to the app, what to acknowledge, when to give up.
/// It holds no socket, key computation, file or clock; a driver tells it what happened and does what it answers.
package struct ClientStateMachine: Hashable, Sendable {
    /// Where a client is between two events.
    package enum Phase: Hashable, Sendable {
        /// Made, not started.
        case idle
        /// Comes back at this time.
        case waiting(until: Instant)
        /// Until this time, like the next three.
        case connecting(until: Instant)
        case awaitingChallenge(until: Instant)
        case awaitingRegistered(until: Instant)
        case awaitingWelcome(until: Instant)
        /// A session is there, or in background only its connection.
        case attached(Attachment)
        /// Until the app comes to the foreground; no connection.
        case asleep
        case stopped
    }

    /// A connection past its handshake.
    package struct Attachment: Hashable, Sendable {
        package let begin: Instant
        package let keepAlive: Duration
        let isCompressionAgreed: Bool
        /// The app is in the background and the gateway has been told.
        package internal(set) var isInBackground = false
        /// `foreground` frames whose `resumed` has not come.
        package internal(set) var resumesAwaited = 0
        /// When the client last sent anything.
        var lastSent: Instant
        /// Something is owed a sign of life since then.
        var askedAt: Instant?
    }

    package let configuration: ClientConfiguration
    package internal(set) var phase: Phase = .idle
    package internal(set) var record: ClientRecord
    /// What a login says of the device's token.
    package internal(set) var deviceToken: TokenChange?
    var isInForeground = true
    var window: ReceiveWindow
    var backoff = Backoff()
    /// No attempt starts before this, because a gateway said so.
    var notBefore: Instant = .distantPast
    /// `record` is newer than what was saved.
    var isUnsaved = false
    /// More of what was read at once is still to be handled.
    var isReading = false
    /// A compressed payload could not be read, in this run of the program.
    var hasFailedToUnpack = false

    package init(configuration: ClientConfiguration, record: ClientRecord) {
        self.configuration = configuration
        self.record = record
        deviceToken = configuration.deviceToken
        window = ReceiveWindow(lastSeq: record.lastSeq, policy: configuration.acknowledging)
    }

    /// Takes note of an event and answers what to do. Every event is allowed in every phase; one that means nothing
    /// there changes nothing.
    package mutating func handle(
        _ event: ClientEvent, now: Instant, using random: inout some RandomNumberGenerator
    ) -> [ClientAction] {
        switch event {
        case .started:
            guard phase == .idle else { return [] }
            return isInForeground ? connect(now: now) : sleep()
        case .connected:
            guard case .connecting(let until) = phase else { return [] }
            phase = .awaitingChallenge(until: until)
            return [.send(.hello(HelloFrame(nonce: .random(using: &random))))]
        case .connectionLost(let text):
            guard hasConnection else { return [] }
            return lose(.lost(text), now: now, using: &random, closing: false)
        case .bytesReceived:
            isReading = true
            updateAttachment { $0.askedAt = nil }
            return []
        case .readingEnded:
            isReading = false
            return acknowledge(now: now)
        case .malformedReceived(let error):
            guard hasConnection else { return [] }
            return lose(.malformed(error), now: now, using: &random)
        case .unpackingFailed(let error): return unpackingFailed(error, now: now, using: &random)
        case .frameReceived(let frame, let isProven):
            return receive(frame, isProven: isProven, now: now, using: &random)
        case .handed(let seq):
            window.hand(seq, now: now)
            if configuration.acknowledges, window.handed > record.lastSeq {
                record.lastSeq = window.handed
                isUnsaved = true
            }
            return acknowledge(now: now)
        case .timerFired: return timerFired(now: now, using: &random)
        case .savingFailed(let text):
            isUnsaved = true
            guard hasConnection else { return [] }
            return lose(.notSaved(text), now: now, using: &random)
        case .enteredForeground: return enterForeground(now: now)
        case .enteredBackground: return enterBackground(now: now)
        case .deviceTokenChanged(let change):
            deviceToken = change
            return send(.deviceToken(DeviceTokenFrame(change: change)), now: now)
        case .stopRequested: return stop()
        }
    }

    /// When the driver must tell `timerFired` at the latest; nil: never.
    package var deadline: Instant? {
        switch phase {
        case .idle, .asleep, .stopped: return nil
        case .waiting(let until), .connecting(let until), .awaitingChallenge(let until), .awaitingRegistered(let until),
            .awaitingWelcome(let until):
            return until
        case .attached(let attachment):
            let deadlines = [pingTime(attachment), answerTime(attachment), ackTime]
            return deadlines.compactMap(\.self).min()
        }
    }

    private mutating func timerFired(
        now: Instant, using random: inout some RandomNumberGenerator
    ) -> [ClientAction] {
        switch phase {
        case .idle, .asleep, .stopped: return []
        case .waiting(let until): return now >= until ? connect(now: now) : []
        case .connecting(let until), .awaitingChallenge(let until), .awaitingRegistered(let until),
            .awaitingWelcome(let until):
            return now >= until ? lose(.noAnswer, now: now, using: &random) : []
        case .attached(let attachment):
            if let time = answerTime(attachment), now >= time { return lose(.noAnswer, now: now, using: &random) }
            var actions = acknowledge(now: now)
            if case .attached(let attachment) = phase, let time = pingTime(attachment), now >= time {
                actions += send(.ping, now: now, expectingLife: true)
            }
            return actions
        }
    }

    func pingTime(_ attachment: Attachment) -> Instant? {
        // While an answer is owed, its time ends the connection first or brings a byte that makes room for a ping.
        attachment.askedAt == nil ? attachment.lastSent + attachment.keepAlive : nil
    }

    func answerTime(_ attachment: Attachment) -> Instant? { attachment.askedAt.map { $0 + ClientLimits.answer } }

    var ackTime: Instant? { configuration.acknowledges ? window.ackDeadline(isReading: isReading) : nil }

    /// Whether the driver holds a connection, or is making one.
    package var hasConnection: Bool {
        switch phase {
        case .idle, .waiting, .asleep, .stopped: false
        case .connecting, .awaitingChallenge, .awaitingRegistered, .awaitingWelcome, .attached: true
        }
    }

    mutating func updateAttachment(_ change: (inout Attachment) -> Void) {
        guard case .attached(var attachment) = phase else { return }
        change(&attachment)
        phase = .attached(attachment)
    }
}

extension Bytes32 {
    /// A nonce or key; as good as the source.
    static func random(using source: inout some RandomNumberGenerator) -> Bytes32 {
        var bytes: [UInt8] = []
        for _ in 0..<4 {
            let word = source.next()
            for shift in stride(from: UInt64(0), to: 64, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: word >> shift))
            }
        }
        return Bytes32(bytes) ?? .zero
    }
}
