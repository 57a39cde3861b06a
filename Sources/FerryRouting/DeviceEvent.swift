package import FerryCore

/// What happened to a device, told to its `DeviceStateMachine`.
package enum DeviceEvent: Hashable, Sendable {
    /// A message is on disk. Its `seq` is above all earlier ones of the device.
    case messageSynced(KeptMessage)
    /// A session began. `lastSeq` is what its client has handed to the app, nil where that number does not count here.
    /// `continues`: on the connection of the session before it.
    case attached(SessionID, lastSeq: Seq?, window: Int32, windowBytes: Int32, continues: Bool)
    case detached(SessionID, SessionEnd)
    case acknowledged(Seq)
    /// The next entry in order went to the session's connection.
    case sent(Seq)
    /// The record of one dropped message (expired or overflowed, and not live only) is on disk.
    case dropSynced
    /// The record that stubs are due is on disk.
    case dueSynced
    /// The wake-up channel answered for the default stub, or for one message's own alert.
    case stubAnswered(StubPlan)
    /// The wake-up channel answered for a message whose strategy begins there.
    case handOverAnswered(Seq, isAccepted: Bool)
    /// The message's own alert was not asked for after all: while its text was read, the device came back.
    case stubWithdrawn(Seq)
    /// It is the device's turn to be woken for a kept broadcast. If it is there, its owner is woken when it leaves without it.
    case wakeWanted(Seq)
    case tokenChanged(hasToken: Bool)
    /// The time of a kept broadcast is over, and that is on disk.
    case broadcastEnded(Seq)
    /// A broadcast ended before this machine was told of it: it counts as missed and nowhere else. Told in order of `seq`, and
    /// before anything with a higher one.
    case broadcastMissed(Seq)
    /// The sender took a kept message back, and that is on disk. It is over at once, sent or not, and nobody is told of a gap.
    case takenBack(Seq, EndReason)
    /// The store cannot give this message any more.
    case unreadable(Seq)
    /// The session's client does not take this kind of content: `next` goes on with what follows.
    case kindNotTaken(Seq)
    case timePassed
}

/// A wake-up to be asked for.
package enum StubPlan: Hashable, Sendable {
    /// The default text, for all messages up to `upTo`; expires when the latest of them does.
    case standard(upTo: Seq, badge: Int, expiresAt: Instant)
    /// The message's own alert.
    case own(KeptMessage)
}

/// What the driver must do, in order.
package enum DeviceAction: Hashable, Sendable {
    /// Journal that everything up to here is acknowledged.
    case recordAcknowledged(Seq)
    /// The message has reached a terminal state, for this reason. Journal it unless it was delivered; count it; forget its table row.
    case end(KeptMessage, EndReason)
    /// Journal that stubs are due up to here; answer with `.dueSynced`.
    case recordStubsDue(upTo: Seq)
    /// Journal that no stub can be sent for what is kept up to here. It settles nothing: with a token the stub is due.
    case recordNoToken(upTo: Seq)
    case requestStub(StubPlan)
    /// Close the older session's connection.
    case takeOver(SessionID)
    /// There may be something to send: see `next`.
    case transmit
    /// The peer acknowledged what it was never sent: close its connection.
    case refuseAck
}
