internal import FerryCore
internal import FerryRouting

/// Short texts for the table of a device's machine.
enum DeviceNotation {
    static func text(_ machine: DeviceStateMachine, now: Instant) -> String {
        var parts = [text(machine.presence, now: now)]
        parts.append("kept [" + (0..<machine.log.count).map { text(machine.log[$0]) }.joined(separator: " ") + "]")
        if let gap = machine.gap { parts.append("gap \(text(gap))") }
        switch machine.next(now: now) {
        case .message(let message)?: parts.append("next \(message.seq)")
        case .gap(let gap)?: parts.append("next gap \(gap.upTo)")
        case nil: break
        }
        if machine.window.inFlight > 0 { parts.append("in flight \(machine.window.inFlight)") }
        parts.append("acked \(machine.acknowledged)")
        if !machine.hasToken { parts.append("no token") }
        if let deadline = machine.deadline { parts.append("wakes \(offset(deadline, now))") }
        return parts.joined(separator: "; ")
    }

    static func text(_ action: DeviceAction, now: Instant) -> String {
        switch action {
        case .recordAcknowledged(let seq): "record acked \(seq)"
        case .end(let message, let reason): "end \(message.seq) \(reason.state)"
        case .recordStubsDue(let seq): "record stubs due to \(seq)"
        case .recordNoToken(let seq): "record no token to \(seq)"
        case .requestStub(.own(let message)): "stub own \(message.seq)"
        case .requestStub(.standard(let upTo, let badge, let expiresAt)):
            "stub to \(upTo) badge \(badge) expires \(offset(expiresAt, now))"
        case .takeOver(let session): "take over \(session.rawValue)"
        case .transmit: "transmit"
        case .refuseAck: "refuse ack"
        }
    }

    private static func text(_ presence: Presence, now: Instant) -> String {
        switch presence {
        case .offline: "offline"
        case .attached(let session): "session \(session.rawValue)"
        case .grace(let until): "grace \(offset(until, now))"
        case .restored(let until): "restored \(offset(until, now))"
        }
    }

    /// `seq`, then the stub's state; `*` when the device was offline.
    private static func text(_ message: KeptMessage) -> String {
        "\(message.seq):\(message.stub)\(message.wasOffline ? "*" : "")"
    }

    private static func text(_ gap: Gap) -> String { "\(gap.upTo) (\(gap.expired) expired, \(gap.overflowed) over)" }

    private static func offset(_ instant: Instant, _ now: Instant) -> String {
        "\(instant.milliseconds - now.milliseconds >= 0 ? "+" : "")\(instant.milliseconds - now.milliseconds)"
    }
}
