internal import FerryCore
internal import FerryIO
internal import Synchronization

/// Why a push is refused that nothing is wrong with.
package enum Shortage: Int, Sendable, CaseIterable {
    /// `memoryBytes`.
    case memory
    /// `storeBytes`.
    case store
    /// `diskReserveBytes`.
    case disk
    /// `unsyncedBytes`: the disk does not keep up.
    case sync
    /// `messageCap` or `byteCap` of its device, where `capPolicy` says so.
    case device
    /// `broadcastsPerApp` or `broadcastBytes`.
    case broadcasts
    /// `listTasksPerApp` or `listStoreBytes`.
    case lists
}

/// What all shards together may take of one thing, and what they have taken. Crossings of 80 and 100 % are logged, again
/// only after it has fallen well below them.
final class Budget: Sendable {
    private enum Level: Int {
        case easy, tight, usedUp
    }

    /// The key that sets it.
    let key: String
    let cap: Cap
    private let taken = Atomic<Int>(0)
    private let level = Atomic<Int>(Level.easy.rawValue)

    init(key: String, cap: Cap) {
        self.key = key
        self.cap = cap
    }

    /// Whether `more` than what is taken would be too much.
    func isExceeded(by more: Int) -> Bool { !cap.isUnlimited && taken.load(ordering: .relaxed) + more > cap.value }

    /// Whether more than the whole is taken by so much that even what makes room has to wait.
    var isFarExceeded: Bool { !cap.isUnlimited && taken.load(ordering: .relaxed) > cap.value / 4 * 5 }

    /// Takes `amount`; false, and nothing taken, when that would be too much.
    func take(_ amount: Int) -> Bool {
        guard !cap.isUnlimited else { return true }
        guard taken.add(amount, ordering: .relaxed).newValue <= cap.value else {
            taken.subtract(amount, ordering: .relaxed)
            note(refuses: true)
            return false
        }
        note(refuses: false)
        return true
    }

    /// Takes or, below 0, gives back what is there whether it fits or not.
    func change(by amount: Int) {
        guard !cap.isUnlimited, amount != 0 else { return }
        taken.add(amount, ordering: .relaxed)
        note(refuses: false)
    }

    /// Something was refused because of `isExceeded`.
    func noteRefusal() { note(refuses: true) }

    private func note(refuses: Bool) {
        let now = taken.load(ordering: .relaxed)
        let old = Level(rawValue: level.load(ordering: .relaxed)) ?? .easy
        let new = next(old, share: Double(now) / Double(cap.value), refuses: refuses)
        guard new != old,
            level.compareExchange(expected: old.rawValue, desired: new.rawValue, ordering: .relaxed).exchanged,
            new.rawValue > old.rawValue
        else { return }
        switch new {
        case .easy: break
        case .tight:
            EventLog.write(
                .warning, "a budget is used up to 80 %", ["key": key, "used": String(now), "of": cap.description])
        case .usedUp:
            EventLog.write(
                .warning, "a budget is used up: pushes are refused",
                ["key": key, "used": String(now), "of": cap.description])
        }
    }

    private func next(_ old: Level, share: Double, refuses: Bool) -> Level {
        if refuses || share >= 1 { return .usedUp }
        if old == .usedUp, share >= 0.95 { return .usedUp }
        if share >= 0.8 || (old != .easy && share >= 0.7) { return .tight }
        return .easy
    }
}
