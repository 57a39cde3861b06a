internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// Facts, noted where each thing becomes true: counted at once, and given to the timeline at the end of the tick.
extension Shard {
    mutating func note(_ fact: Fact, _ device: Int) { note(fact, of: devices[device].cid) }

    mutating func note(_ fact: Fact, of cid: CID) {
        tally.count(fact)
        noteInTimeline(fact, cid)
    }

    /// What is counted elsewhere.
    mutating func noteInTimeline(_ fact: Fact, _ cid: CID) {
        guard environment.timeline != nil else { return }
        facts.append(fact, of: cid, at: now)
        if facts.isFull { handOverFacts() }
    }

    mutating func handOverFacts() {
        guard !facts.isEmpty else { return }
        let count = facts.count
        environment.timeline?.note(facts.take(), count: count)
    }

    /// The session that begins on this connection.
    func attachment(_ slot: Int, _ session: SessionID, lastSeq: Seq?, continues: Bool) -> Attachment {
        let peer = connections[slot].peer
        return Attachment(
            session: session, way: continues ? .foreground : .login, peerAddress: peer.address, peerPort: peer.port,
            lastSeq: lastSeq)
    }
}

extension Acceptance {
    init(_ message: AcceptedMessage) {
        let stub: Stub =
            switch message.stub {
            case .none: .none
            case .due: .due
            case .noToken: .noToken
            case .notWanted: .notWanted
            }
        self.init(
            seq: message.seq, messageID: message.messageID, taskID: message.taskID, acceptedAt: message.acceptedAt,
            expiresAt: message.expiresAt, payloadBytes: UInt32(clamping: message.payload.count),
            wasOnline: message.wasOnline, hasOwnAlert: message.alert != nil, stub: stub)
    }
}

extension StubPlan {
    private var place: (StubKind, Seq) {
        switch self {
        case .standard(let upTo, _, _): (.standard, upTo)
        case .own(let message): (.own, message.seq)
        }
    }

    var requested: Fact { .stubRequested(place.0, upTo: place.1) }

    func answered(_ answer: StubAnswer) -> Fact {
        let verdict: StubVerdict =
            switch answer {
            case .accepted: .accepted
            case .refused(let reason): .refused(reason)
            }
        return .stubAnswered(place.0, upTo: place.1, verdict)
    }
}

extension Departure {
    init(_ ending: SessionEnding) {
        self =
            switch ending {
            case .lost: .lost
            case .background: .background
            case .bye: .bye
            }
    }
}

extension [SessionAction] {
    /// What these actions close the connection with.
    var closeCode: CloseCode? {
        for case .close(let reason) in self { return reason.code }
        return nil
    }
}
