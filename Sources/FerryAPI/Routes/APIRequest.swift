package import FerryCore

/// A call with its parameters read and checked, as far as that is possible without knowing apps and devices.
package enum APIRequest: Hashable, Sendable {
    case authenticate(AuthRequest)
    case revoke(token: String)
    case pushSingle(SinglePush)
    case pushBatch(PushBatch)
    case pushAll(BroadcastPush)
    /// A push to many for a later time.
    case schedule(ScheduledPush)
    case task(TaskCall)
    case list(ListCall)
    /// 1...1000 devices, each once, in the order asked.
    case userStatus([CID])
    case timeline(TimelineQuery)
    case report(ReportRequest)
    /// With the token that it was asked with.
    case presence(PresenceQuery, token: String)
    case user(UserCall)
    case native(NativeRequest)
    case health
    case ready
}

/// `POST /auth`.
package struct AuthRequest: Hashable, Sendable {
    /// Its body has no more.
    static let bodyBytes = 4_096

    /// 64 hex digits; to be compared with the lower-case hex of SHA-256 over appKey, the timestamp's digits and the
    /// master secret.
    package let sign: String
    /// Milliseconds since 1970 by the sender's clock, 0 at least.
    package let timestamp: Int64
    package let appKey: String

    package init(sign: String, timestamp: Int64, appKey: String) {
        self.sign = sign
        self.timestamp = timestamp
        self.appKey = appKey
    }
}

/// For how long a message is kept for a device that is not there.
package enum TimeToLive: Hashable, Sendable, BitwiseCopyable {
    /// Delivered now or never (ttl −1 and 0).
    case liveOnly
    /// 1...259,200,000.
    case milliseconds(Int64)
}

/// `POST /push/single/cid`.
package struct SinglePush: Hashable, Sendable {
    /// 10...32 characters; the sender's name for this call, so that a repeat can be known.
    package let requestID: String
    package var cid: CID
    /// The content, not empty: of the kind that `traits` names.
    package let payload: [UInt8]
    package let ttl: TimeToLive
    package let traits: MessageTraits
    /// The sender's own alert; nil for the gateway's default.
    package let alert: APNsAlert?

    package init(
        requestID: String, cid: CID, payload: [UInt8], ttl: TimeToLive, traits: MessageTraits = .none, alert: APNsAlert?
    ) {
        self.requestID = requestID
        self.cid = cid
        self.payload = payload
        self.ttl = ttl
        self.traits = traits
        self.alert = alert
    }

    /// Bytes that two pushes share exactly when their content is the same: payload, ttl, traits and alert. `requestID` and
    /// `cid` are left out: they are the key under which contents are compared.
    package var contentDigestInput: [UInt8] {
        var writer = ByteWriter()
        writer.bytes.reserveCapacity(payload.count + (alert?.payload.count ?? 0) + 64)
        writer.string(payload)
        switch ttl {
        case .liveOnly: writer.varint(0)
        case .milliseconds(let milliseconds): writer.varint(UInt64(max(0, milliseconds)))
        }
        // What has no traits has the digest that it had before there were any.
        if traits != .none {
            writer.byte(3)
            writer.string(traits.encoded)
        }
        guard let alert else {
            writer.byte(0)
            return writer.bytes
        }
        writer.byte(alert.pushType == .alert ? 1 : 2)
        writer.string(alert.payload)
        writer.string(Array((alert.collapseID ?? "").utf8))
        return writer.bytes
    }
}

/// `POST /push/all`: a message for every device of the app.
package struct BroadcastPush: Hashable, Sendable {
    /// As in a `SinglePush`.
    package let requestID: String
    /// As in a `SinglePush`.
    package let payload: [UInt8]
    package let ttl: TimeToLive
    /// When it is to be released; nil: at once.
    package var scheduledAt: Instant?
    /// Only what means something for a push to all.
    package let traits: MessageTraits
    /// Devices a second; 0 has no limit.
    package var speed: Int64 = 0
    /// Owners of devices that are away are woken.
    package var wakes = false
    /// How; nil: as the gateway does it.
    package var alert: APNsAlert?

    package init(requestID: String, payload: [UInt8], ttl: TimeToLive, traits: MessageTraits = .none) {
        self.requestID = requestID
        self.payload = payload
        self.ttl = ttl
        self.traits = traits
    }

    /// Bytes that two of them share exactly when their content is the same: payload, ttl, time, how it goes, and traits.
    package var contentDigestInput: [UInt8] {
        var writer = ByteWriter()
        writer.string(payload)
        switch ttl {
        case .liveOnly: writer.varint(0)
        case .milliseconds(let milliseconds): writer.varint(UInt64(max(0, milliseconds)))
        }
        if let scheduledAt {
            writer.byte(4)
            writer.uint64(UInt64(bitPattern: scheduledAt.milliseconds))
        }
        if speed > 0 {
            writer.byte(5)
            writer.uint64(UInt64(speed))
        }
        if !wakes { writer.byte(6) }
        if let alert {
            writer.byte(alert.pushType == .alert ? 7 : 8)
            writer.string(alert.payload)
            writer.string(Array((alert.collapseID ?? "").utf8))
        }
        if traits != .none { writer.string(traits.encoded) }
        return writer.bytes
    }
}

/// What a push that came over a link asks for, checked.
package struct LinkPushTerms: Hashable, Sendable {
    package let ttl: TimeToLive
    /// The sender's own alert; nil for the gateway's default.
    package let alert: APNsAlert?
}

/// `POST /push/single/batch/cid`: up to 200 single pushes in one call. `POST /v1/{appId}/push`: one content for up to 1000.
package struct PushBatch: Hashable, Sendable {
    /// In the order given.
    package let pushes: [SinglePush]
    /// The answer tells nothing of single messages.
    package let isAsync: Bool
    /// It came under `/v1`, whose answer looks different.
    package let isNative: Bool

    package init(pushes: [SinglePush], isAsync: Bool, isNative: Bool = false) {
        self.pushes = pushes
        self.isAsync = isAsync
        self.isNative = isNative
    }
}

/// A request to APNs as the sender wants it.
package struct APNsAlert: Hashable, Sendable {
    /// The header `apns-push-type`.
    package enum PushType: String, Hashable, Sendable {
        case alert
        case background
    }

    /// The whole JSON body, at most 4096 bytes.
    package let payload: [UInt8]
    /// The header `apns-collapse-id`: 1...64 printable ASCII characters.
    package let collapseID: String?
    package let pushType: PushType

    package init(payload: [UInt8], collapseID: String?, pushType: PushType) {
        self.payload = payload
        self.collapseID = collapseID
        self.pushType = pushType
    }
}

/// What the operator may set.
package struct APILimits: Hashable, Sendable {
    /// Characters (Unicode scalars) in `push_message.transmission`, GeTui's unit; beside it stands the protocol's own
    /// limit of 65,536 bytes.
    package let payloadCharacters: Int
    /// Bytes of a body. The HTTP decoder's limit should be the same.
    package let bodyBytes: Int
    /// Of calls about users.
    package var users: UserLimits

    /// Both are brought into their range: 1...65,536 characters, 1 byte at least.
    package init(payloadCharacters: Int = 3072, bodyBytes: Int = 4_194_304, users: UserLimits = UserLimits()) {
        self.users = users
        self.payloadCharacters = min(max(1, payloadCharacters), Limits.payloadBytes)
        self.bodyBytes = max(1, bodyBytes)
    }

    /// Pushes in one call that brings many.
    static let pushesPerCall = 200
    /// Devices that one call adds to a task.
    static let targetsPerCall = 1000
    /// Devices in one call that asks about many.
    static let cidsPerCall = 1000
    static let maximumTimeToLive = Limits.timeToLiveMilliseconds
    static let defaultTimeToLive = Limits.timeToLiveDefaultMilliseconds
}
