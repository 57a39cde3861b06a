internal import FerryCore
internal import FerrySession
internal import FerryTestSupport

/// A session's machine with the plain facts beside it: when what last happened.
struct SessionWorld: Hashable {
    enum Step: Hashable {
        case event(SessionEvent)
        case wait
    }

    var machine: SessionStateMachine
    var now = Instant(milliseconds: 0)
    var state = SessionStateMachine.State.foreground
    var lastByte = Instant(milliseconds: 0)
    /// Since when something is in flight; nil when nothing is.
    var inFlightSince: Instant?
    var lastAck: Instant?
    var blockedSince: Instant?
    /// The probe of this silence was sent.
    var isProbed = false

    init() {
        machine = SessionStateMachine(keepAlive: Sample.quickKeepAlive, now: Instant(milliseconds: 0))
    }

    /// All that may happen; an ack only while something is in flight.
    func steps(until end: Int64) -> [Step] {
        guard now.milliseconds < end else { return [.event(.timePassed)] }
        var events: [SessionEvent] = [
            .bytesReceived, .pingReceived, .pongReceived, .backgroundReceived, .foregroundReceived(lastSeq: Seq(1)),
            .byeReceived, .unexpectedFrameReceived, .entrySent, .outputBlocked(true),
            .outputBlocked(false), .takenOver, .timePassed, .connectionLost,
        ]
        if inFlightSince != nil { events += [.acknowledged(isEmpty: true), .acknowledged(isEmpty: false)] }
        return events.map { .event($0) } + [.wait]
    }

    mutating func perform(_ step: Step) throws(Violation) {
        switch step {
        case .wait: now.milliseconds += 1
        case .event(let event):
            var actions: [SessionAction] = []
            machine.handle(event, now: now, policy: Sample.quickPolicy, actions: &actions)
            let expected = expect(event)
            try Violation.unless(actions == expected, "\(expected) is due, not \(actions)")
        }
        try Violation.unless(machine.state == state, "the state is \(state)")
        try checkDeadline()
    }

    /// What the promises ask for, from the facts; changes the facts.
    private mutating func expect(_ event: SessionEvent) -> [SessionAction] {
        guard state != .closed else { return [] }
        switch event {
        case .bytesReceived:
            lastByte = now
            isProbed = false
            return []
        case .pingReceived: return [.sendPong]
        case .pongReceived: return []
        case .acknowledged(let isEmpty):
            if state == .foreground {
                if isEmpty { inFlightSince = nil }
                lastAck = now
                isProbed = false
            }
            return []
        case .entrySent:
            if state == .foreground, inFlightSince == nil {
                inFlightSince = now
                lastAck = nil
            }
            return []
        case .outputBlocked(let isBlocked):
            blockedSince = isBlocked ? blockedSince ?? now : nil
            return []
        case .backgroundReceived:
            guard state == .foreground else { return close(.close(.protocolError)) }
            state = .background
            inFlightSince = nil
            lastAck = nil
            isProbed = false
            return [.endSession(.background)]
        case .foregroundReceived(let lastSeq):
            guard state == .background else { return close(.close(.protocolError)) }
            state = .foreground
            return [.startSession(lastSeq: lastSeq)]
        case .byeReceived: return close(.disconnect, .bye)
        case .connectionLost: return close(.disconnect)
        case .unexpectedFrameReceived: return close(.close(.protocolError))
        case .takenOver:
            state = .closed
            return [.close(.takenOver)]
        case .timePassed: return expectTime()
        }
    }

    private mutating func close(_ last: SessionAction, _ ending: SessionEnding = .lost) -> [SessionAction] {
        defer { state = .closed }
        return state == .foreground ? [.endSession(ending), last] : [last]
    }

    private mutating func expectTime() -> [SessionAction] {
        if let blockedSince, milliseconds(since: blockedSince) >= 6 { return close(.close(.tooSlow)) }
        if let inFlightSince {
            let silence = milliseconds(since: max(inFlightSince, lastByte, lastAck ?? .distantPast))
            if silence >= 4 { return close(.close(.ackDeadlineExpired)) }
            if milliseconds(since: max(inFlightSince, lastAck ?? .distantPast)) >= 9 {
                return close(.close(.nothingAcknowledged))
            }
            if silence >= 2, !isProbed {
                isProbed = true
                return [.sendPing]
            }
        }
        return milliseconds(since: lastByte) >= 12 ? close(.close(.keepAliveExpired)) : []
    }

    private func milliseconds(since instant: Instant) -> Int64 { now.milliseconds - instant.milliseconds }

    /// An open connection always has a deadline, and it is the first moment at which anything happens.
    private func checkDeadline() throws(Violation) {
        let deadline = machine.deadline(Sample.quickPolicy)
        guard state != .closed else {
            try Violation.unless(deadline == .distantFuture, "a closed session wants to be woken")
            return
        }
        try Violation.unless(deadline.milliseconds <= now.milliseconds + 12, "no deadline within the keep-alive time")
        let before = Instant(milliseconds: deadline.milliseconds - 1)
        for moment in [before, deadline] where moment >= now {
            var other = machine
            var actions: [SessionAction] = []
            other.handle(.timePassed, now: moment, policy: Sample.quickPolicy, actions: &actions)
            try Violation.unless(actions.isEmpty == (moment < deadline), "the deadline is exact")
        }
    }
}
