package import FerryCore

/// The scheduled calls of the apps that one shard owns: what waits, what is due, what became of what.
///
/// It promises: a call is due once, at its time or after; what is being released cannot be cancelled and what is being
/// cancelled is not released, so that of two records that are on their way to the disk none contradicts the other; it
/// forgets what has ended `remembered` after its time, and of each app all but the newest `endedAtMost` before.
///
/// It does not do: I/O, making the calls, rows.
package struct ScheduleBook: Sendable {
    package enum Cancelling: Equatable, Sendable {
        /// It waits for its record; tell `cancelled` or `keptWaiting`.
        case begun
        case alreadyCancelled
        /// Its time has come, or what it became is there.
        case alreadyRun
        /// Less than `ScheduleBook.lastCall` is left.
        case tooLate
        case unknown
    }

    private enum Step: Equatable { case resting, releasing, cancelling }

    private struct Entry {
        var call: ScheduledCall
        var step = Step.resting
        /// It is not tried before this.
        var dueAt: Instant
    }

    /// A call is cancelled earlier than so long before its time.
    package static let lastCall = Duration.seconds(60)
    /// For so long after its time it is told what became of a call.
    package static let remembered = Duration.seconds(7 * 86_400)
    /// Of each app.
    package static let endedAtMost = 1_000

    private var entries: [Identifier128: Entry] = [:]
    private var waiting: [AppID: Int] = [:]
    private var ended: [AppID: [Identifier128]] = [:]
    /// Nothing is due before this, and nothing is to be forgotten.
    package private(set) var nextDue = Instant.distantFuture

    package init() {}

    package var count: Int { entries.count }
    /// Calls whose record is on its way to the disk.
    package var unsettled: Int { entries.values.count { $0.step != .resting } }
    package func waitingCount(of app: AppID) -> Int { waiting[app] ?? 0 }

    package func find(_ task: TaskID, of app: AppID) -> ScheduledCall? {
        guard let call = entries[task.value]?.call, call.taskID == task, call.app == app else { return nil }
        return call
    }

    /// On disk: just accepted, or found at a start. Answers ended calls that are too many now, to be forgotten for good.
    package mutating func add(_ call: ScheduledCall) -> [ScheduledCall] {
        let isWaiting = call.state == .waiting
        entries[call.taskID.value] = Entry(
            call: call, dueAt: isWaiting ? call.releaseAt : call.releaseAt + Self.remembered)
        nextDue = min(nextDue, isWaiting ? call.releaseAt : call.releaseAt + Self.remembered)
        guard isWaiting else { return noteEnded(call) }
        waiting[call.app, default: 0] += 1
        return []
    }

    // MARK: - Release

    /// What is to be released now, in order of its time, and what is to be forgotten. Each of the former is to be answered by
    /// `settle` or `tryAgain`.
    package mutating func takeDue(now: Instant) -> (release: [ScheduledCall], forget: [ScheduledCall]) {
        guard now >= nextDue else { return ([], []) }
        var release: [ScheduledCall] = []
        var forget: [ScheduledCall] = []
        nextDue = .distantFuture
        for (task, entry) in entries {
            guard entry.step == .resting else { continue }
            guard entry.dueAt <= now else {
                nextDue = min(nextDue, entry.dueAt)
                continue
            }
            if entry.call.state == .waiting {
                release.append(entry.call)
            } else {
                forget.append(entry.call)
            }
            _ = task
        }
        for call in release { entries[call.taskID.value]?.step = .releasing }
        for call in forget { drop(call) }
        return (release.sorted { ($0.releaseAt, $0.taskID.value) < ($1.releaseAt, $1.taskID.value) }, forget)
    }

    /// It could not be released now.
    package mutating func tryAgain(_ task: Identifier128, at time: Instant) {
        guard entries[task]?.step == .releasing else { return }
        entries[task]?.step = .resting
        entries[task]?.dueAt = time
        nextDue = min(nextDue, time)
    }

    /// The record of its end is on disk. Answers ended calls that are too many now, to be forgotten for good.
    package mutating func settle(_ task: Identifier128, _ state: ScheduledCall.State) -> [ScheduledCall] {
        guard let entry = entries[task], entry.call.state == .waiting else { return [] }
        let call = entry.call.ended(state)
        count(call.app, -1)
        entries[task] = Entry(call: call, dueAt: call.releaseAt + Self.remembered)
        nextDue = min(nextDue, call.releaseAt + Self.remembered)
        return noteEnded(call)
    }

    // MARK: - Cancelling

    /// `isStop`: by a call that ends a task whatever it has come to, also in its last minute.
    package mutating func beginCancelling(
        _ task: TaskID, of app: AppID, now: Instant, isStop: Bool = false
    ) -> Cancelling {
        guard let entry = entries[task.value], entry.call.taskID == task, entry.call.app == app else { return .unknown }
        switch entry.call.state {
        case .released, .failed: return .alreadyRun
        case .cancelled: return .alreadyCancelled
        case .waiting: break
        }
        guard entry.step != .releasing, isStop || now < entry.call.releaseAt else { return .alreadyRun }
        guard isStop || now + Self.lastCall < entry.call.releaseAt else { return .tooLate }
        entries[task.value]?.step = .cancelling
        return .begun
    }

    /// The disk refused the record.
    package mutating func keptWaiting(_ task: Identifier128) {
        guard let entry = entries[task], entry.step == .cancelling else { return }
        entries[task]?.step = .resting
        nextDue = min(nextDue, entry.dueAt)
    }

    // MARK: - Ended ones

    private mutating func count(_ app: AppID, _ by: Int) {
        let left = (waiting[app] ?? 0) + by
        waiting[app] = left > 0 ? left : nil
    }

    private mutating func noteEnded(_ call: ScheduledCall) -> [ScheduledCall] {
        ended[call.app, default: []].append(call.taskID.value)
        var going: [ScheduledCall] = []
        while let list = ended[call.app], list.count > Self.endedAtMost, let first = list.first,
            let oldest = entries[first]?.call
        {
            going.append(oldest)
            drop(oldest)
        }
        return going
    }

    private mutating func drop(_ call: ScheduledCall) {
        entries[call.taskID.value] = nil
        guard var list = ended[call.app] else { return }
        if let place = list.firstIndex(of: call.taskID.value) { list.remove(at: place) }
        ended[call.app] = list.isEmpty ? nil : list
    }
}
