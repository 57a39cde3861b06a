internal import FerryCore

/// How pushes that the gateway had no room for (30019) are sent again.
package struct BusyPolicy: Hashable, Sendable {
    /// The code of such a refusal, as in the HTTP API.
    package static let code: UInt64 = 30_019
    /// From a refusal to the next try; doubles with each refusal, up to `maximum`. Up to half of it is added by chance, so
    /// that what was refused together does not come back together.
    package var first: Duration = .seconds(1)
    package var maximum: Duration = .seconds(30)
    /// Refusals of one push, after which it counts as refused. With the other numbers that is two to four minutes.
    package var tries = 10

    package init() {}

    func wait(refusals: Int, using random: inout some RandomNumberGenerator) -> Duration {
        let span = min(first * (1 << min(max(refusals, 1) - 1, 20)), maximum)
        return span + .milliseconds(Int64.random(in: 0...span.inMilliseconds / 2, using: &random))
    }
}

/// Pushes that wait because the gateway had no room, by device. The first of a device was refused and is tried again alone;
/// the others wait behind it, so that the device gets them in their order.
struct HeldPushes: Hashable, Sendable {
    private struct Line: Hashable, Sendable {
        /// In the order in which they were queued.
        var pushes: [QueuedPush] = []
        /// Of the first one.
        var refusals = 0
        /// When the first one is sent again; nil while it is out, and not among `pushes`.
        var due: Instant?
        var out: UInt64?
    }

    private let policy: BusyPolicy
    private var lines: [CID: Line] = [:]
    /// Devices whose last push was given up: of them nothing more is tried twice until one is accepted.
    private var hopeless: Set<CID> = []
    private(set) var count = 0
    private(set) var bytes = 0
    /// No push is due before this; nil: none will be.
    private(set) var earliest: Instant?

    private static let hopelessLimit = 65_536

    init(policy: BusyPolicy) { self.policy = policy }

    var all: [QueuedPush] { lines.values.flatMap(\.pushes).sorted { $0.order < $1.order } }
    var isEmpty: Bool { lines.isEmpty }

    /// Takes in a push that was refused for want of room. false: it has been tried often enough.
    mutating func hold(
        refused push: QueuedPush, now: Instant, using random: inout some RandomNumberGenerator
    ) -> Bool {
        if hopeless.contains(push.cid), lines[push.cid] == nil { return false }
        var line = lines[push.cid] ?? Line()
        let isFirst = line.pushes.isEmpty && line.due == nil && line.out == nil
        guard isFirst || line.out == push.order else {
            // It was out behind the one that was refused first.
            insert(push, into: &line)
            lines[push.cid] = line
            return true
        }
        line.refusals += 1
        guard line.refusals < policy.tries else {
            giveUp(push.cid, &line, now: now)
            return false
        }
        insert(push, into: &line)
        setDue(now + policy.wait(refusals: line.refusals, using: &random), &line)
        lines[push.cid] = line
        return true
    }

    /// Whether a push that has not been sent must wait behind others of its device; then it has been taken in.
    mutating func holdBehind(_ push: QueuedPush) -> Bool {
        guard !lines.isEmpty, var line = lines[push.cid] else { return false }
        insert(push, into: &line)
        lines[push.cid] = line
        return true
    }

    private mutating func insert(_ push: QueuedPush, into line: inout Line) {
        let place = line.pushes.lastIndex { $0.order < push.order }.map { $0 + 1 } ?? 0
        line.pushes.insert(push, at: place)
        count += 1
        bytes += push.bodyBytes
    }

    /// A push has its answer, and that was not for want of room.
    mutating func answered(_ push: QueuedPush, isAccepted: Bool, now: Instant) {
        if isAccepted, !hopeless.isEmpty { hopeless.remove(push.cid) }
        guard !lines.isEmpty, var line = lines[push.cid], line.out == push.order else { return }
        if isAccepted { line.refusals = 0 }
        goOn(push.cid, &line, now: now)
    }

    private mutating func giveUp(_ cid: CID, _ line: inout Line, now: Instant) {
        if hopeless.count >= Self.hopelessLimit { hopeless = [] }
        hopeless.insert(cid)
        // The next one gets one try, not all of them again.
        line.refusals = policy.tries - 1
        goOn(cid, &line, now: now)
    }

    private mutating func goOn(_ cid: CID, _ line: inout Line, now: Instant) {
        guard !line.pushes.isEmpty else {
            lines[cid] = nil
            return
        }
        setDue(now, &line)
        lines[cid] = line
    }

    private mutating func setDue(_ due: Instant, _ line: inout Line) {
        line.due = due
        line.out = nil
        earliest = earliest.map { min($0, due) } ?? due
    }

    /// Pushes whose time has come and that `hasRoom` lets go, the first of a device each; they are out now.
    mutating func takeDue(now: Instant, while hasRoom: (QueuedPush) -> Bool) -> [QueuedPush] {
        guard let earliest, earliest <= now else { return [] }
        // In the order of their times and numbers, whatever the order of the table.
        let due = lines.compactMap { cid, line in
            line.due.flatMap { $0 <= now ? (due: $0, order: line.pushes[0].order, cid: cid) : nil }
        }.sorted { ($0.due, $0.order) < ($1.due, $1.order) }
        var taken: [QueuedPush] = []
        for entry in due {
            guard var line = lines[entry.cid], let push = line.pushes.first, hasRoom(push) else { break }
            line.pushes.removeFirst()
            line.due = nil
            line.out = push.order
            lines[entry.cid] = line
            count -= 1
            bytes -= push.bodyBytes
            taken.append(push)
        }
        self.earliest = lines.values.compactMap(\.due).min()
        return taken
    }

    /// The link is gone, and with it a push that was out: it is the first of its device again. false: it was not held.
    mutating func putBack(_ push: QueuedPush, now: Instant) -> Bool {
        guard !lines.isEmpty, var line = lines[push.cid], line.out == push.order else { return false }
        insert(push, into: &line)
        setDue(now, &line)
        lines[push.cid] = line
        return true
    }
}
