package import FerryCore

/// Reports as GeTui words them. Counters are numbers; what a gateway cannot know (whether a message was shown or touched) is 0.
extension ReportPart {
    /// By the text of the task as it was asked for; tasks that nothing is known of are left out.
    /// - Parameters:
    ///   - detail: with the losses by stage and the states of all messages.
    ///   - actions: feedback ids that are counted beside.
    package func tasksJSON(_ asked: [(text: String, task: Identifier128)], detail: Bool, actions: [String]) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        for (text, task) in asked {
            guard let counters = tasks[task] else { continue }
            writer.name(text)
            writer.report(counters, detail: detail, actions: actions)
        }
        writer.endObject()
        return writer.bytes
    }

    /// An empty object where there is no task of the group.
    package func groupJSON(_ name: String) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        if let group {
            writer.name(name)
            writer.report(group, detail: false, actions: [])
        }
        writer.endObject()
        return writer.bytes
    }

    package func dayJSON(_ day: CalendarDay) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.name(day.description)
        writer.report(self.day?.messages ?? ReportCounters(), detail: false, actions: [])
        writer.endObject()
        return writer.bytes
    }

    package func usersJSON(_ day: CalendarDay) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.name(day.description)
        writer.beginObject()
        writer.member("accumulative_num", devices?.count ?? 0)
        writer.member("register_num", self.day?.registered ?? 0)
        writer.member("active_num", self.day?.active ?? 0)
        writer.member("online_num", self.day?.peakOnline ?? 0)
        writer.endObject()
        writer.endObject()
        return writer.bytes
    }

    /// How much was pushed today. There is no quota: `limit` is false, and what is left of it 0.
    package var countJSON: [UInt8] {
        let messages = day?.messages ?? ReportCounters()
        var writer = JSONWriter()
        writer.beginObject()
        for (channel, count) in [("gt", messages.accepted), ("ios", messages.stubsRequested)] {
            writer.name(channel)
            writer.beginObject()
            writer.name("all")
            writer.beginObject()
            writer.member("push_num", count)
            writer.member("total_num", 0)
            writer.member("remain_num", 0)
            writer.name("limit")
            writer.truth(false)
            writer.endObject()
            writer.endObject()
        }
        writer.endObject()
        return writer.bytes
    }
}

/// Where a message was lost, and why, in GeTui's letters.
package struct MessageLoss: Hashable, Sendable {
    /// `rs`: it was never sent. `sf`: it was sent and did not arrive.
    package let stage: String
    /// `d5`: the device is gone. `d6`: above a quota. `d12`: offline for the whole ttl. `d14`: other.
    package let kind: String

    /// nil for what is no loss.
    package init?(_ reason: EndReason) {
        stage = reason == .liveSessionEnded ? "sf" : "rs"
        switch reason.state {
        case _ where reason == .deviceFull: kind = "d6"
        case _ where reason == .windowOver || reason == .turnTooLate: kind = "d14"
        case .kept, .delivered, .handed: return nil
        case .expired: kind = "d12"
        case .overflowed: kind = "d6"
        case .skipped: kind = "d5"
        case .failed, .revoked: kind = "d14"
        }
    }

    package static let stages = ["ts", "rs", "sf", "fd"]
}

extension ReportCounters {
    /// Messages that went to a device: those that it acknowledged, and those that its session ended with.
    fileprivate var sentHere: Int64 {
        EndReason.allCases.reduce(ended(DeliveryState.delivered)) {
            $0 + (MessageLoss($1)?.stage == "sf" ? ended($1) : 0)
        }
    }
}

extension JSONWriter {
    fileprivate mutating func report(_ counters: ReportCounters, detail: Bool, actions: [String]) {
        let delivered = counters.ended(DeliveryState.delivered)
        let handed = counters.ended(DeliveryState.handed)
        beginObject()
        name("total")
        channel(
            accepted: counters.accepted, sent: counters.sentHere + handed, received: delivered + handed)
        name("gt")
        channel(accepted: nil, sent: counters.sentHere, received: delivered)
        name("ios")
        channel(
            accepted: nil, sent: max(counters.stubsRequested, handed), received: max(counters.stubsAccepted, handed))
        if !actions.isEmpty {
            name("actionCntMap")
            beginObject()
            for action in actions {
                name(action)
                integer(0)
            }
            endObject()
        }
        if detail { self.detail(counters) }
        endObject()
    }

    private mutating func channel(accepted: Int64?, sent: Int64, received: Int64) {
        beginObject()
        if let accepted { member("msg_num", accepted) }
        member("target_num", sent)
        member("receive_num", received)
        member("display_num", 0)
        member("click_num", 0)
        endObject()
    }

    private mutating func detail(_ counters: ReportCounters) {
        name("failed_detail")
        beginObject()
        for stage in MessageLoss.stages {
            var losses: [String: Int64] = [:]
            for reason in EndReason.allCases {
                guard let loss = MessageLoss(reason), loss.stage == stage, counters.ended(reason) != 0 else { continue }
                losses[loss.kind, default: 0] += counters.ended(reason)
            }
            name(stage)
            beginObject()
            if !losses.isEmpty {
                name("gt")
                beginObject()
                for (kind, count) in losses.sorted(by: { $0.key < $1.key }) {
                    name(kind)
                    integer(count)
                }
                endObject()
            }
            endObject()
        }
        endObject()
        name("states")
        beginObject()
        for state in DeliveryState.allCases {
            name("\(state)")
            integer(state == .kept ? counters.kept : counters.ended(state))
        }
        endObject()
    }
}
