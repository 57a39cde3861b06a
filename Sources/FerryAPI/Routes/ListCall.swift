package import FerryCore

/// The calls that push one content to many devices that the sender names or describes.
package enum ListRoute: Hashable, Sendable {
    case message
    case cid
}

package enum ListCall: Hashable, Sendable {
    case message(ListMessage)
    case targets(ListTargets)
}

/// `POST /push/list/message`: a content to be kept, for devices that later calls name.
package struct ListMessage: Hashable, Sendable {
    /// As in a `SinglePush`.
    package let requestID: String
    /// The transmission, UTF-8, not empty.
    package let payload: [UInt8]
    package let ttl: TimeToLive
    /// The sender's own alert; nil for the gateway's default.
    package let alert: APNsAlert?

    package init(requestID: String, payload: [UInt8], ttl: TimeToLive, alert: APNsAlert?) {
        self.requestID = requestID
        self.payload = payload
        self.ttl = ttl
        self.alert = alert
    }

    /// As that of a `SinglePush`.
    package var contentDigestInput: [UInt8] {
        SinglePush(
            requestID: requestID, cid: CID(Identifier128(high: 0, low: 0)), payload: payload, ttl: ttl, alert: alert
        ).contentDigestInput
    }
}

/// `POST /push/list/cid`: devices that are to get a task's content.
package struct ListTargets: Hashable, Sendable {
    /// As the sender wrote it.
    package let task: String
    /// 1...1000, each once, in the order given.
    package let cids: [CID]
    /// The answer tells nothing of single devices.
    package let isAsync: Bool

    package init(task: String, cids: [CID], isAsync: Bool) {
        self.task = task
        self.cids = cids
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

    /// The answer's `data`.
    func write(to writer: inout JSONWriter) {
        switch self {
        case .sent(let task, let sent, let refused):
            writer.beginObject()
            writer.name(plain: { task.append(to: &$0) })
            writer.beginObject()
            for target in sent {
                writer.name(plain: { Hexadecimal.append(target.cid.value, to: &$0) })
                writer.string(target.status.rawValue)
            }
            writer.endObject()
            writer.notAccepted(refused)
            writer.endObject()
        }
    }
}

extension JSONWriter {
    /// Nothing where all was accepted.
    mutating func notAccepted(_ refused: [APIAnswer.RefusedPush]) {
        guard !refused.isEmpty else { return }
        name("not_accepted")
        beginObject()
        for push in refused {
            name(push.cid.description)
            string(push.reason)
        }
        endObject()
    }
}
