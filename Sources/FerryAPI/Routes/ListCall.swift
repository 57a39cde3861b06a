package import FerryAudience
package import FerryCore

/// The calls that push one content to many devices that the sender names or describes.
package enum ListRoute: Hashable, Sendable {
    case message
    case cid
    case alias
    case tag
    case fastCustomTag
}

package enum ListCall: Hashable, Sendable {
    case message(ListMessage)
    case targets(ListTargets)
    case audience(ListMessage, ListAudience)
}

/// Who gets a push to an audience, and how fast.
package struct ListAudience: Hashable, Sendable {
    package let expression: AudienceExpression
    /// Targets a second; 0 for no limit.
    package let speed: Int64

    package init(_ expression: AudienceExpression, speed: Int64) {
        self.expression = expression
        self.speed = speed
    }

    /// Bytes that two of them share exactly when they are the same.
    package var digestInput: [UInt8] {
        var writer = ByteWriter()
        writer.varint(UInt64(max(0, speed)))
        for condition in expression.conditions {
            writer.byte(condition.field.rawValue)
            writer.byte(condition.operation.rawValue)
            writer.varint(UInt64(condition.values.count))
            for value in condition.values { writer.string(value.utf8) }
        }
        return writer.bytes
    }
}

/// `POST /push/list/message`: a content to be kept, for devices that later calls name.
package struct ListMessage: Hashable, Sendable {
    /// As in a `SinglePush`.
    package let requestID: String
    package let payload: [UInt8]
    package let ttl: TimeToLive
    package let traits: MessageTraits
    /// The sender's own alert; nil for the gateway's default.
    package let alert: APNsAlert?
    /// Of a push to an audience: when it is to be released; nil: at once.
    package var scheduledAt: Instant?

    package init(
        requestID: String, payload: [UInt8], ttl: TimeToLive, traits: MessageTraits = .none, alert: APNsAlert?
    ) {
        self.requestID = requestID
        self.payload = payload
        self.ttl = ttl
        self.traits = traits
        self.alert = alert
    }

    /// As that of a `SinglePush`, and its time.
    package var contentDigestInput: [UInt8] {
        let input = SinglePush(
            requestID: requestID, cid: CID(Identifier128(high: 0, low: 0)), payload: payload, ttl: ttl, traits: traits,
            alert: alert
        ).contentDigestInput
        guard let scheduledAt else { return input }
        var writer = ByteWriter()
        writer.string(input)
        writer.uint64(UInt64(bitPattern: scheduledAt.milliseconds))
        return writer.bytes
    }
}

/// `POST /push/list/cid` and `/push/list/alias`: devices that are to get a task's content.
package struct ListTargets: Hashable, Sendable {
    /// As the sender wrote it.
    package let task: String
    /// 1...1000, each once, in the order given; or none, and names instead.
    package let cids: [CID]
    package let aliases: [String]
    /// The answer tells which name each device has.
    package let needsAliasDetail: Bool
    /// The answer tells nothing of single devices.
    package let isAsync: Bool

    package init(
        task: String, cids: [CID], isAsync: Bool, aliases: [String] = [], needsAliasDetail: Bool = false
    ) {
        self.task = task
        self.cids = cids
        self.aliases = aliases
        self.needsAliasDetail = needsAliasDetail
        self.isAsync = isAsync
    }

    /// What names the task in the gateway; nil for what can be no task's id.
    package var taskValue: Identifier128? {
        guard task.utf8.count <= 64,
            let start = task.utf8.index(task.utf8.endIndex, offsetBy: -32, limitedBy: task.utf8.startIndex)
        else { return nil }
        return Identifier128(hex: String(task[start...]))
    }
}

/// What calls for many devices are answered with.
package enum ListAnswer: Hashable, Sendable {
    package struct Sent: Hashable, Sendable {
        package let cid: CID
        package let status: PushStatus

        package init(cid: CID, status: PushStatus) {
            self.cid = cid
            self.status = status
        }
    }

    /// What was taken of a task, and why what was not was not.
    case sent(task: TaskID, [Sent], refused: [APIAnswer.RefusedPush])
    /// The same by name.
    case sentByName(task: TaskID, [Named], refused: [APIAnswer.RefusedPush])

    package struct Named: Hashable, Sendable {
        package let alias: String
        package let devices: [Sent]

        package init(alias: String, devices: [Sent]) {
            self.alias = alias
            self.devices = devices
        }
    }

    /// The answer's `data`.
    func write(to writer: inout JSONWriter) {
        switch self {
        case .sent(let task, let sent, let refused):
            writer.beginObject()
            writer.name(plain: { task.append(to: &$0) })
            writer.sent(sent)
            writer.notAccepted(refused)
            writer.endObject()
        case .sentByName(let task, let names, let refused):
            writer.beginObject()
            writer.name(plain: { task.append(to: &$0) })
            writer.beginObject()
            for named in names {
                writer.name(named.alias)
                writer.sent(named.devices)
            }
            writer.endObject()
            writer.namesNotAccepted(refused)
            writer.endObject()
        }
    }
}

extension JSONWriter {
    fileprivate mutating func sent(_ sent: [ListAnswer.Sent]) {
        beginObject()
        for target in sent {
            name(plain: { Hexadecimal.append(target.cid.value, to: &$0) })
            string(target.status.rawValue)
        }
        endObject()
    }

    /// As deep as what was accepted: GeTui's client for Java reads a map of maps of maps.
    fileprivate mutating func namesNotAccepted(_ refused: [APIAnswer.RefusedPush]) {
        guard !refused.isEmpty else { return }
        name("not_accepted")
        beginObject()
        for push in refused {
            name(push.target)
            beginObject()
            name("reason")
            string(push.reason)
            endObject()
        }
        endObject()
    }

    /// Nothing where all was accepted.
    mutating func notAccepted(_ refused: [APIAnswer.RefusedPush]) {
        guard !refused.isEmpty else { return }
        name("not_accepted")
        beginObject()
        for push in refused {
            name(push.target)
            string(push.reason)
        }
        endObject()
    }
}
