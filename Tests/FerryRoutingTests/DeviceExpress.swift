internal import FerryCore
internal import FerryRouting
internal import FerryTestSupport

/// The short way of a message beside the long one, wherever a world comes to.
enum DeviceExpress {
    static func check(
        _ event: DeviceEvent, at machine: DeviceStateMachine, now: Instant, policy: DeliveryPolicy
    ) throws(Violation) {
        switch event {
        case .messageSynced(let message): try checkSent(message, machine, now, policy)
        case .acknowledged(let seq): try checkAcknowledged(seq, machine, now, policy)
        case .attached, .detached, .sent, .dropSynced, .dueSynced, .stubAnswered, .stubWithdrawn, .tokenChanged,
            .wakeWanted, .broadcastEnded, .broadcastMissed, .takenBack, .unreadable, .kindNotTaken, .handOverAnswered,
            .timePassed:
            break
        }
    }

    private static func checkSent(
        _ message: KeptMessage, _ machine: DeviceStateMachine, _ now: Instant, _ policy: DeliveryPolicy
    ) throws(Violation) {
        var short = machine
        var spare = used
        guard let sent = short.keepSent(message, now: now, policy: policy, spare: &spare) else {
            return try Violation.unless(short == machine, "the short way is not taken, and left a trace")
        }
        var long = machine
        var actions: [DeviceAction] = []
        long.handle(.messageSynced(message), now: now, policy: policy, actions: &actions)
        try Violation.unless(actions == [.transmit], "the long way has to do \(actions)")
        try Violation.unless(
            long.next(now: now) == .message(sent), "the long way sends \(String(describing: long.next(now: now)))")
        long.handle(.sent(sent.seq), now: now, policy: policy, actions: &actions)
        try Violation.unless(
            short.window == long.window && short.log == long.log && short.gap == long.gap,
            "sent by the short way, the stream is another")
        // What is on its way has no expiry; the long way finds that out at the session's end only.
        guard let session = long.presence.session else { throw Violation("sent without a session") }
        for end in SessionEnd.allCases {
            var (one, other) = (short, long)
            var (ofOne, ofOther): ([DeviceAction], [DeviceAction]) = ([], [])
            one.handle(.detached(session, end), now: now, policy: policy, actions: &ofOne)
            other.handle(.detached(session, end), now: now, policy: policy, actions: &ofOther)
            try Violation.unless(one == other && ofOne == ofOther, "after the session's end, \(end), it shows")
        }
    }

    private static func checkAcknowledged(
        _ seq: Seq, _ machine: DeviceStateMachine, _ now: Instant, _ policy: DeliveryPolicy
    ) throws(Violation) {
        var short = machine
        var spare = SpareWork()
        var ended: [KeptMessage] = []
        guard short.acknowledgeAll(seq, ended: &ended, spare: &spare) else {
            return try Violation.unless(
                short == machine && ended.isEmpty, "the short way is not taken, and left a trace")
        }
        var long = machine
        var actions: [DeviceAction] = []
        long.handle(.acknowledged(seq), now: now, policy: policy, actions: &actions)
        let expected = ended.map { DeviceAction.end($0, .acknowledged) } + [.recordAcknowledged(seq), .transmit]
        try Violation.unless(actions == expected, "the long way has to do \(actions), the short one \(expected)")
        try Violation.unless(short == long, "acknowledged by the short way, the device is another")
        try Violation.unless(long.next(now: now) == nil, "the short way leaves something to send")
        try Violation.unless(spare.count == 1, "what ended left no memory")
    }

    /// With memory that another device's messages were in.
    private static var used: SpareWork {
        var spare = SpareWork()
        var ended: [KeptMessage] = []
        var other = DeviceStateMachine(acknowledged: Seq(3), gap: nil, hasToken: true)
        var actions: [DeviceAction] = []
        let (now, policy) = (Instant(milliseconds: 5), DeliveryPolicy())
        let session = SessionID(rawValue: 77)
        other.handle(
            .attached(session, lastSeq: nil, window: 8, windowBytes: 100, continues: false), now: now, policy: policy,
            actions: &actions)
        for seq in 4...6 {
            let message = KeptMessage(
                seq: Seq(UInt64(seq)), expiresAt: Instant(milliseconds: 9),
                location: RecordLocation(segment: 8, offset: 7, length: 6), payloadBytes: 5, isLiveOnly: seq == 5,
                hasOwnAlert: seq == 6, wasOffline: true, stub: .due)
            _ = other.keepSent(message, now: now, policy: policy, spare: &spare)
        }
        _ = other.acknowledgeAll(Seq(6), ended: &ended, spare: &spare)
        return spare
    }
}
