package import FerryCore

/// Something that has become true, of a device or of the gateway. Facts are what counters are summed from and what the
/// timeline log holds; no decision is taken on them.
package enum Fact: Hashable, Sendable {
    // Of a message.
    /// Its record is on disk.
    case accepted(Acceptance)
    /// It went to the session's connection. `isOffLine` is the flag that the device reads.
    case sent(Seq, SessionID, isOffLine: Bool)
    /// It reached a terminal state.
    case ended(Seq, EndReason)

    // Of a broadcast, under its task: see `FactWriter`.
    /// Its places in the partitions of one shard are on disk: it is accepted once for each of so many devices.
    case broadcastPlaced(targets: UInt64)
    /// It is over for so many devices that nobody had told of it; a device that comes later is told that it missed it.
    case broadcastOver(EndReason, targets: UInt64)

    // Of a device's stream.
    case gapSent(Gap)
    /// The device has everything up to here.
    case acknowledged(upTo: Seq)

    // Of its wake-ups.
    /// What is kept up to here and has had no stub wants one.
    case stubDue(upTo: Seq)
    /// The same, and the device has no push token.
    case noToken(upTo: Seq)
    case stubRequested(StubKind, upTo: Seq)
    case stubAnswered(StubKind, upTo: Seq, StubVerdict)
    /// The message's own alert was not asked for after all: the device came back while its text was read.
    case stubWithdrawn(Seq)
    case tokenChanged(hasToken: Bool)

    // Of its presence.
    case attached(Attachment)
    /// `closeCode` is what the gateway closed the connection with, 0 when it did not.
    case detached(SessionID, Departure, closeCode: UInt16)
    /// A newer session of the device ended this one.
    case takenOver(SessionID)
    /// The device counts as offline from now on: it left, or did not come back within the re-attach grace.
    case wentOffline

    // Of the gateway.
    case started
    /// An orderly stop; a start without one before it followed a crash.
    case stopped
    /// So many facts were not written: the disk was full, failed, or too slow.
    case factsLost(UInt64)
}

/// A fact with its time.
package struct TimedFact: Hashable, Sendable {
    package var at: Instant
    package var fact: Fact
    /// Its place among the facts of one story, where many have the same time; 0 elsewhere.
    package var order = 0

    package init(_ at: Instant, _ fact: Fact) {
        self.at = at
        self.fact = fact
    }
}

/// A message as it was accepted.
package struct Acceptance: Hashable, Sendable, BitwiseCopyable {
    package enum Stub: UInt8, Sendable, BitwiseCopyable, CaseIterable {
        /// The device was online.
        case none = 0
        case due = 1
        case noToken = 2
        /// Live only, without an alert of its own.
        case notWanted = 3
    }

    package var seq: Seq
    package var messageID: MessageID
    package var taskID: TaskID
    /// When it took its place in the stream; its record was on disk at the time of the fact.
    package var acceptedAt: Instant
    /// `acceptedAt` itself for a live-only message.
    package var expiresAt: Instant
    package var payloadBytes: UInt32
    package var wasOnline: Bool
    package var hasOwnAlert: Bool
    package var stub: Stub
    /// A broadcast's, noted when the device's turn came. It was accepted for all devices at once, and counts there.
    package var isBroadcast: Bool
    /// Noted at a start, of a message whose first fact a crash may have lost. It may be there twice, and behind facts of later ones.
    package var isNotedAgain: Bool

    package var isLiveOnly: Bool { expiresAt == acceptedAt }

    package init(
        seq: Seq, messageID: MessageID, taskID: TaskID, acceptedAt: Instant, expiresAt: Instant, payloadBytes: UInt32,
        wasOnline: Bool, hasOwnAlert: Bool, stub: Stub, isBroadcast: Bool = false, isNotedAgain: Bool = false
    ) {
        self.seq = seq
        self.messageID = messageID
        self.taskID = taskID
        self.acceptedAt = acceptedAt
        self.expiresAt = expiresAt
        self.payloadBytes = payloadBytes
        self.wasOnline = wasOnline
        self.hasOwnAlert = hasOwnAlert
        self.stub = stub
        self.isBroadcast = isBroadcast
        self.isNotedAgain = isNotedAgain
    }
}

/// A session that began.
package struct Attachment: Hashable, Sendable, BitwiseCopyable {
    package enum Way: UInt8, Sendable, BitwiseCopyable, CaseIterable {
        /// A login or registration over a new connection.
        case login = 1
        /// The app came back to the foreground on the connection that it had.
        case foreground = 2
    }

    package var session: SessionID
    package var way: Way
    /// IPv4, in host byte order.
    package var peerAddress: UInt32
    package var peerPort: UInt16
    /// What the device said that it has, where that number counted.
    package var lastSeq: Seq?

    package init(session: SessionID, way: Way, peerAddress: UInt32, peerPort: UInt16, lastSeq: Seq?) {
        self.session = session
        self.way = way
        self.peerAddress = peerAddress
        self.peerPort = peerPort
        self.lastSeq = lastSeq
    }
}

/// How a session ended.
package enum Departure: UInt8, Hashable, Sendable, BitwiseCopyable, CaseIterable {
    case lost = 1
    case background = 2
    case bye = 3
}

/// Which alert a stub carries.
package enum StubKind: UInt8, Hashable, Sendable, BitwiseCopyable, CaseIterable {
    /// The gateway's text, for all messages up to a `seq`.
    case standard = 1
    /// The sender's own alert, for one message.
    case own = 2
}

/// What the wake-up channel answered.
package enum StubVerdict: Hashable, Sendable {
    case accepted
    /// At most `reasonBytes` bytes are kept of the reason.
    case refused(String)

    package static let reasonBytes = 200
}
