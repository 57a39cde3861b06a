internal import FerryCore
internal import FerryStats
internal import Testing

/// The answers' text, byte for byte: clients parse it.
struct ReportTextTests {
    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
    private let task = Identifier128(high: 1, low: 2)

    private func part() -> ReportPart {
        var counters = ReportCounters()
        counters.accepted = 20
        counters.end(.acknowledged, 9)
        counters.end(.liveSessionEnded, 1)
        counters.end(.ttlRanOut, 2)
        counters.end(.noLiveSession, 1)
        counters.end(.byteCap, 3)
        counters.end(.unreadable, 1)
        var part = ReportPart()
        part.tasks[task] = counters
        return part
    }

    private let channels =
        #""total":{"msg_num":20,"target_num":10,"receive_num":9,"display_num":0,"click_num":0},"#
        + #""gt":{"target_num":10,"receive_num":9,"display_num":0,"click_num":0},"#
        + #""ios":{"target_num":0,"receive_num":0,"display_num":0,"click_num":0}"#

    @Test func `a task has its channels, and an unknown one is left out`() {
        let asked = [("RASA_1201_x", task), ("RASA_1201_y", Identifier128(high: 1, low: 3))]
        #expect(
            text(part().tasksJSON(asked, detail: false, actions: [])) == #"{"RASA_1201_x":{\#(channels)}}"#)
        #expect(
            text(part().tasksJSON(asked, detail: false, actions: ["90001"]))
                == #"{"RASA_1201_x":{\#(channels),"actionCntMap":{"90001":0}}}"#)
        #expect(text(ReportPart().tasksJSON(asked, detail: true, actions: [])) == "{}")
    }

    @Test func `losses have their stage and class, and states add up`() {
        let detail =
            #""failed_detail":{"ts":{},"rs":{"gt":{"d12":3,"d14":1,"d6":3}},"sf":{"gt":{"d12":1}},"fd":{}},"#
            + #""states":{"kept":3,"delivered":9,"handed":0,"failed":1,"skipped":0,"expired":4,"overflowed":3,"#
            + #""revoked":0}"#
        #expect(
            text(part().tasksJSON([("t", task)], detail: true, actions: [])) == #"{"t":{\#(channels),\#(detail)}}"#)
    }

    @Test func `each reason has a place in the funnel`() {
        for reason in EndReason.allCases {
            let isLost = MessageLoss(reason) != nil
            #expect(isLost == (reason.state != .delivered && reason.state != .handed))
        }
    }

    @Test func `days and groups have the same channels`() throws {
        let day = try #require(CalendarDay("2026-12-01"))
        var part = part()
        part.group = part.tasks[task]
        #expect(text(part.groupJSON("spring")) == #"{"spring":{\#(channels)}}"#)
        #expect(text(ReportPart().groupJSON("spring")) == "{}")
        var counters = DayCounters()
        counters.messages = try #require(part.tasks[task])
        counters.messages.stubsRequested = 4
        counters.messages.stubsAccepted = 3
        (counters.registered, counters.active, counters.peakOnline) = (1, 2, 3)
        part.day = counters
        part.devices = ReportPart.DeviceCount(day: day, count: 12)
        #expect(text(part.dayJSON(day)).contains(#""ios":{"target_num":4,"receive_num":3,"#))
        #expect(
            text(part.usersJSON(day))
                == #"{"2026-12-01":{"accumulative_num":12,"register_num":1,"active_num":2,"online_num":3}}"#)
        #expect(
            text(part.countJSON)
                == #"{"gt":{"all":{"push_num":20,"total_num":0,"remain_num":0,"limit":false}},"#
                + #""ios":{"all":{"push_num":4,"total_num":0,"remain_num":0,"limit":false}}}"#)
        #expect(text(ReportPart().dayJSON(day)).hasPrefix(#"{"2026-12-01":{"total":{"msg_num":0,"#))
    }

    @Test func `parts of shards are added, but what no shard sees alone`() throws {
        let days = try ["2026-11-29", "2026-11-30"].map { try #require(CalendarDay($0)) }
        var left = part()
        var right = part()
        left.day = DayCounters()
        left.day?.peakOnline = 5
        left.day?.registered = 5
        right.day = left.day
        right.day?.peakOnline = 4
        left.devices = ReportPart.DeviceCount(day: days[0], count: 100)
        right.devices = ReportPart.DeviceCount(day: days[1], count: 90)
        left += right
        #expect(left.tasks[task]?.accepted == 40)
        #expect(left.day?.peakOnline == 5 && left.day?.registered == 10)
        #expect(left.devices == ReportPart.DeviceCount(day: days[1], count: 90))
    }
}

struct OnlineCurveTests {
    private let app = AppID("demo")
    private let start = Instant(milliseconds: 1_796_054_400_000)

    @Test func `there is a point each ten minutes, none where nobody looked, and none older than a day`() throws {
        let app = try #require(app)
        var curve = OnlineCurve(now: start)
        var rows: [[UInt8]: [UInt8]] = [:]
        #expect(curve.next == start + .seconds(600))
        var taken = 0
        for minutes in stride(from: 10, through: 60 * 30, by: 10) {
            // Somebody slept for an hour, and woke late for a point.
            if (100..<160).contains(minutes) { continue }
            let now = start + .seconds(Int64(minutes) * 60 + (minutes == 160 ? 61 : 3))
            for row in curve.draw([app], now: now, online: { _ in minutes }) { rows[row.key] = row.value }
            taken = minutes
        }
        #expect(taken == 1_800)
        #expect(rows.count == 144)
        let text = String(decoding: curve.json(app, now: start + .seconds(1_800 * 60 + 3)), as: UTF8.self)
        #expect(text.hasPrefix(#"{"online_statics":{"1796076600000":370,"#))
        #expect(text.hasSuffix(#","1796162400000":1800}}"#))
        var again = OnlineCurve(now: start)
        for (key, value) in rows.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            again.restore(key: key, value: value)
        }
        #expect(String(decoding: again.json(app, now: start + .seconds(1_800 * 60 + 3)), as: UTF8.self) == text)
    }

    @Test func `who wakes late takes no point, and a damaged row is none`() throws {
        let app = try #require(app)
        var curve = OnlineCurve(now: start)
        #expect(curve.draw([app], now: start + .seconds(661), online: { _ in 5 }).isEmpty)
        #expect(curve.next == start + .seconds(1_200))
        let row = try #require(curve.draw([app], now: start + .seconds(1_200), online: { _ in 5 }).first)
        var damaged = OnlineCurve(now: start)
        for count in row.key.indices { damaged.restore(key: Array(row.key[..<count]), value: row.value ?? []) }
        damaged.restore(key: row.key, value: [])
        damaged.restore(key: row.key, value: [2, 5])
        #expect(String(decoding: damaged.json(app, now: start), as: UTF8.self) == #"{"online_statics":{}}"#)
    }
}
