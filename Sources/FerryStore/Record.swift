package import FerryCore

/// One fact in the journal. What one shard takes of one API call is one record, so it is there whole or not at all.
package enum Record: Equatable, Sendable {
    case deviceRegistered(DeviceRegistration)
    /// All of the device is gone: its row, its messages. A registration behind it begins anew.
    case deviceRemoved(cid: CID, at: Instant)
    case pushTokenChanged(cid: CID, token: PushToken?, at: Instant)
    case deviceSeen(cid: CID, at: Instant)
    case messageAccepted(AcceptedMessage)
    /// Everything up to `upTo` is delivered.
    case acknowledged(cid: CID, upTo: Seq)
    /// A message ended without the device's acknowledgement. `state` is terminal and not `.delivered`.
    /// `isTold` false: no gap counts it, though it expired. Replay could not tell once the message's row is forgotten.
    case settled(cid: CID, seq: Seq, state: DeliveryState, isTold: Bool = true)
    /// Messages up to `upTo` became due for a stub after their acceptance (the device went offline with them unacknowledged).
    case stubDue(cid: CID, upTo: Seq)
    /// A wake-up that stood for the messages up to `upTo` has its answer.
    case stubSettled(cid: CID, upTo: Seq, outcome: StubOutcome)
    /// An API token must be refused from now until `expiresAt`. `digest` is the SHA-256 of its text.
    case apiTokenRevoked(digest: [UInt8], expiresAt: Instant)
    /// A message for all devices of an app that are registered when it gets its places.
    case broadcastAccepted(AcceptedBroadcast)
    case broadcastPlaced(BroadcastPlacement)
    /// A shard counts the broadcast as over from now on. It says nothing that the time of its batch does not say: from there no
    /// later life begins before the broadcast's end.
    case broadcastExpired(task: Identifier128)
    /// Its sender stopped the broadcast: it is over, whatever its time.
    case broadcastStopped(task: Identifier128)
    /// Rows of what changes seldom, all of one call.
    case controlRows([ControlRow])
}

/// A device's first registration; repeated registrations write nothing.
package struct DeviceRegistration: Equatable, Sendable {
    package var app: AppID
    package var cid: CID
    package var generation: UInt32
    package var at: Instant
    /// The highest `seq` of its partition at that time: broadcasts up to there are not for this device.
    package var acknowledged: Seq

    package init(app: AppID, cid: CID, generation: UInt32, at: Instant, acknowledged: Seq = .zero) {
        self.app = app
        self.cid = cid
        self.generation = generation
        self.at = at
        self.acknowledged = acknowledged
    }
}

/// What a message needs by way of a stub, as known when it was accepted.
package enum StubNeed: UInt8, Sendable, CaseIterable, BitwiseCopyable {
    /// The device was online.
    case none = 0
    /// The device was offline and has a token: a stub is due.
    case due = 1
    /// The device was offline and has no token.
    case noToken = 2
    /// Live only and without an alert of its own: nothing to wake for.
    case notWanted = 3
}

/// How a wake-up ended.
package enum StubOutcome: UInt8, Sendable, CaseIterable {
    case accepted = 1
    case refused = 2
    case noToken = 3
}

/// The sender's own alert, as it goes to APNs.
package struct OwnAlert: Equatable, Sendable {
    /// The whole APNs body, 1...4,096 bytes of JSON.
    package var body: [UInt8]
    /// At most 64 bytes.
    package var collapseID: String?
    /// `apns-push-type: background` instead of `alert`.
    package var isBackground: Bool

    package init(body: [UInt8], collapseID: String?, isBackground: Bool) {
        self.body = body
        self.collapseID = collapseID
        self.isBackground = isBackground
    }
}

/// The request id that a message came with, so that a repeat finds the first answer.
package struct RequestKey: Hashable, Sendable, BitwiseCopyable {
    /// Digest of (app, request id, cid).
    package var key: Identifier128
    /// Digest of the content, to tell a repeat from a mistake.
    package var content: Identifier128

    package init(key: Identifier128, content: Identifier128) {
        self.key = key
        self.content = content
    }
}

/// A message as the journal and the tables hold it.
package struct AcceptedMessage: Equatable, Sendable {
    package var cid: CID
    package var seq: Seq
    package var messageID: MessageID
    package var taskID: TaskID
    package var acceptedAt: Instant
    /// `acceptedAt` itself for a live-only message.
    package var expiresAt: Instant
    package var stub: StubNeed
    /// What the API answered: whether the device was online at acceptance.
    package var wasOnline: Bool
    package var request: RequestKey?
    package var traits: MessageTraits
    package var alert: OwnAlert?
    package var payload: [UInt8]
    /// Set where the record only refers to the content of its task: `alert` and `payload` are empty then, and `messageID` and,
    /// unless it is nil, `request` are those that (task, cid) makes.
    package var reference: ContentReference?

    package var isLiveOnly: Bool { expiresAt == acceptedAt }

    package init(
        cid: CID, seq: Seq, messageID: MessageID, taskID: TaskID, acceptedAt: Instant, expiresAt: Instant,
        stub: StubNeed, wasOnline: Bool, request: RequestKey?, traits: MessageTraits = .none, alert: OwnAlert?,
        payload: [UInt8], reference: ContentReference? = nil
    ) {
        self.cid = cid
        self.seq = seq
        self.messageID = messageID
        self.taskID = taskID
        self.acceptedAt = acceptedAt
        self.expiresAt = expiresAt
        self.stub = stub
        self.wasOnline = wasOnline
        self.request = request
        self.traits = traits
        self.alert = alert
        self.payload = payload
        self.reference = reference
    }
}

/// What the gateway knows of a device for good: the row of the devices table.
package struct DeviceRecord: Equatable, Sendable {
    package var app: AppID
    package var cid: CID
    package var generation: UInt32
    package var registeredAt: Instant
    /// The last login.
    package var seenAt: Instant
    package var token: PushToken?
    /// Everything up to here is delivered or dropped.
    package var acknowledged: Seq
    /// Dropped messages that the device has not been told of.
    package var gap: Gap?
    /// The highest `upTo` of the device's `stubDue` records: what was accepted with `.none` up to here is due. A stub
    /// record changes the row like any other, so that a kept message's stub outlives the segment that tells of it.
    package var stubDueUpTo: Seq
    /// The highest `upTo` of the device's `stubSettled` records: no stub is due up to here.
    package var stubSettledUpTo: Seq

    package init(registration: DeviceRegistration) {
        app = registration.app
        cid = registration.cid
        generation = registration.generation
        registeredAt = registration.at
        seenAt = registration.at
        token = nil
        acknowledged = registration.acknowledged
        gap = nil
        stubDueUpTo = .zero
        stubSettledUpTo = .zero
    }
}
