internal import FerryCore
internal import FerryStats

func at(_ milliseconds: Int64) -> Instant { Instant(milliseconds: 1_790_000_000_000 + milliseconds) }

/// Facts and views of a device, short enough for tables.
enum Sample {
    static let device = CID(Identifier128(high: 0x0123, low: 0x4567))
    static let session = SessionID(rawValue: 0xabc01)

    static func messageID(_ seq: UInt64) -> MessageID { MessageID(Identifier128(high: 7, low: seq)) }
    static func taskID(_ seq: UInt64) -> TaskID {
        TaskID(Identifier128(high: 8, low: seq), monthDay: 1130, kind: .single)
    }

    /// `ttl` nil is live only.
    static func acceptance(
        _ seq: UInt64, at time: Instant = at(0), ttl: Int64? = 60_000, wasOnline: Bool = true,
        hasOwnAlert: Bool = false, stub: Acceptance.Stub = .none, isBroadcast: Bool = false,
        isNotedAgain: Bool = false
    ) -> Acceptance {
        Acceptance(
            seq: Seq(seq), messageID: messageID(seq), taskID: taskID(seq), acceptedAt: time,
            expiresAt: ttl.map { time + .milliseconds($0) } ?? time, payloadBytes: 123, wasOnline: wasOnline,
            hasOwnAlert: hasOwnAlert, stub: stub, isBroadcast: isBroadcast, isNotedAgain: isNotedAgain)
    }

    static func attachment(_ session: SessionID = session, lastSeq: UInt64? = nil) -> Attachment {
        Attachment(
            session: session, way: .login, peerAddress: 0x7f00_0001, peerPort: 4711, lastSeq: lastSeq.map { Seq($0) })
    }

    static func view(
        _ presence: DeviceView.Presence = .offline, now: Instant = at(100_000), acknowledged: UInt64 = 0,
        kept: Int = 0, sentUpTo: UInt64 = 0, hasToken: Bool = true
    ) -> DeviceView {
        DeviceView(
            now: now, presence: presence, registeredAt: at(-1_000), seenAt: at(0), hasToken: hasToken,
            acknowledged: Seq(acknowledged), keptCount: kept, keptBytes: kept * 123,
            sentUpTo: Seq(max(acknowledged, sentUpTo)))
    }

    /// At least one of every kind, with its extremes.
    static let facts: [Fact] =
        [
            .accepted(acceptance(1)), .accepted(acceptance(.max, ttl: nil, wasOnline: false, stub: .notWanted)),
            .accepted(acceptance(300, ttl: 259_200_000, wasOnline: false, hasOwnAlert: true, stub: .due)),
            .accepted(acceptance(5, wasOnline: false, stub: .noToken)),
            .accepted(acceptance(6, stub: .notWanted, isBroadcast: true)),
            .accepted(acceptance(7, stub: .due, isNotedAgain: true)),
            .sent(Seq(1), session, isOffLine: false), .sent(Seq(.max), SessionID(rawValue: .max), isOffLine: true),
            .gapSent(Gap(upTo: Seq(9), expired: 3, overflowed: .max)), .acknowledged(upTo: Seq(128)),
            .stubDue(upTo: Seq(3)), .noToken(upTo: Seq(4)), .stubRequested(.standard, upTo: Seq(3)),
            .stubRequested(.own, upTo: Seq(3)), .stubAnswered(.standard, upTo: Seq(3), .accepted),
            .stubAnswered(.own, upTo: Seq(3), .refused("")),
            .stubAnswered(.own, upTo: Seq(3), .refused("BadDeviceToken é")),
            .stubWithdrawn(Seq(3)), .tokenChanged(hasToken: true), .tokenChanged(hasToken: false),
            .attached(attachment()), .attached(attachment(SessionID(rawValue: 0), lastSeq: .max)),
            .detached(session, .lost, closeCode: 1003), .detached(session, .bye, closeCode: 0),
            .detached(session, .background, closeCode: .max), .takenOver(session), .wentOffline, .started, .stopped,
            .factsLost(.max), .broadcastPlaced(targets: 1 << 40), .broadcastOver(.noLiveSession, targets: 3),
        ] + EndReason.allCases.filter { $0 != .acknowledged }.map { .ended(Seq(77), $0) }
}
