package import FerryCore
package import FerryWire

/// A push on its way over a link, as a whole frame: what is sent again after a lost link are the same bytes.
package struct LinkOutgoing: Hashable, Sendable {
    /// Its sender's name for it, such as the number of a line.
    package let tag: UInt64
    package let id: Identifier128
    package let cid: CID
    package let frame: [UInt8]
    /// Of the frame's body, which is what the window counts.
    package let bodyBytes: Int

    package init(tag: UInt64, _ push: LinkPushFrame) {
        self.tag = tag
        id = push.id
        cid = push.cid
        let body = push.body()
        var writer = ByteWriter()
        writer.bytes.reserveCapacity(body.count + WireLimits.headerBytes)
        writer.byte(LinkPushFrame.type.rawValue)
        writer.varint(UInt64(body.count))
        writer.raw(body)
        frame = writer.bytes
        bodyBytes = body.count
    }
}

/// What happened to a backend's side of a link.
package enum LinkClientEvent: Hashable, Sendable {
    case started
    case connected
    /// Also: could not be made.
    case connectionLost(String)
    /// `isProven` says whether the proof in a welcome is right; it means nothing for other frames.
    case frameReceived(LinkGatewayFrame, isProven: Bool)
    /// Some bytes came, whatever they hold. Told before the frames in them.
    case bytesReceived
    /// What came is no frame.
    case malformedReceived(WireError)
    case queued([LinkOutgoing])
    /// Nothing more will be queued.
    case inputEnded
    case timerFired
    case stopRequested
}

/// What the driver must do, in this order.
package enum LinkClientAction: Hashable, Sendable {
    case connect
    case send(LinkBackendFrame)
    /// Put the proof in, then send.
    case prove(LinkLoginFrame)
    case push([UInt8])
    case close
    case tell(LinkClientNotice)
}

/// What the sender may want to know.
package enum LinkClientNotice: Hashable, Sendable {
    case opened(window: UInt64)
    /// So many more, in the order in which they were queued.
    case accepted(Int)
    case refused(LinkOutgoing, code: UInt64, text: String)
    case lost(OfflineReason, again: Duration)
    /// Everything that was queued has its answer.
    case finished
    /// For good, with what is unanswered; nil where the sender asked for it.
    case stopped(OfflineReason?, unanswered: [LinkOutgoing])
}
