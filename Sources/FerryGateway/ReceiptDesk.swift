internal import FerryCore
internal import FerryReceipts

/// What a shard has for the receipts of its devices: the names of kept messages of apps that want receipts, what was noted in
/// this turn, and the lanes.
struct ReceiptDesk {
    struct Key: Hashable {
        let cid: CID
        let seq: Seq
    }

    private struct Named {
        let name: MessageName
        let isShared: Bool

        /// With its place in the table.
        var bytes: Int { 128 + (isShared ? 0 : name.callback.count) }
    }

    /// By the app's number in the device table; nil: it wants none. Apps behind the last want none either.
    private let targets: [ReceiptTarget?]
    /// Some app wants receipts.
    let isActive: Bool
    /// Of kept messages, for apps that want receipts.
    private var names: [Key: Named] = [:]
    /// Noted and not on its way to the disk yet, by app number.
    private(set) var fresh: [Int: [[UInt8]]] = [:]
    var lanes: [ReceiptLaneName: ReceiptLane] = [:]
    private(set) var nameBytes = 0
    /// What the disk refused: receipts, and numbers of rows that were to go.
    private(set) var again: [(lane: ReceiptLaneName, rows: [[UInt8]])] = []
    var goneAgain: [(lane: ReceiptLaneName, numbers: [UInt64])] = []
    /// Found at the start and not looked at yet.
    var unpumped: [ReceiptLaneName] = []
    /// Devices whose removal is on its way to the disk, and of which messages it tells.
    private var leaving: [CID: Set<Seq>] = [:]
    /// Those whose removal was refused and has not begun anew.
    private var stayed: Set<CID> = []
    /// Of messages that have ended.
    var rows = HeldRows()
    /// Of `again`.
    private var againRows = 0
    /// What goes to the disk now ends messages whose receipts may be in `again`.
    var mustTellAll = false

    /// Receipts that wait for a disk that refuses them.
    private static let againLimit = 65_536

    init(_ targets: [ReceiptTarget?], isActive: Bool) {
        self.targets = targets
        self.isActive = isActive && targets.contains { $0 != nil }
    }

    func wantsReceipts(_ app: Int) -> Bool { isActive && app < targets.count && targets[app] != nil }
    func wantsPresence(_ app: Int) -> Bool { isActive && app < targets.count && targets[app]?.tellsPresence == true }

    var hasFresh: Bool { !fresh.isEmpty }
    var memoryBytes: Int { nameBytes + lanes.values.reduce(0) { $0 + $1.memoryBytes } }
    var nameCount: Int { names.count }
    var openLanes: Int { lanes.values.count { !$0.isEmpty } }

    /// `isShared`: its callback is in memory once for all messages of its task.
    mutating func name(_ key: Key, _ name: MessageName, isShared: Bool = false) {
        let named = Named(name: name, isShared: isShared)
        let old = names.updateValue(named, forKey: key)
        nameBytes += named.bytes - (old?.bytes ?? 0)
    }

    mutating func takeName(_ key: Key) -> MessageName? {
        guard let named = names.removeValue(forKey: key) else { return nil }
        nameBytes -= named.bytes
        return named.name
    }

    func name(of key: Key) -> MessageName? { names[key]?.name }

    // MARK: - Devices that are removed

    mutating func beginRemoval(of cid: CID, telling seqs: Set<Seq>) {
        stayed.remove(cid)
        leaving[cid] = seqs
    }

    /// It is on disk.
    mutating func endRemoval(of cid: CID) { leaving[cid] = nil }

    /// The disk has neither the removal nor the receipts that went with it.
    mutating func removalRefused(of cid: CID) {
        if leaving.removeValue(forKey: cid) != nil { stayed.insert(cid) }
    }

    /// The removal that is under way tells of it.
    func hasTold(_ cid: CID, _ seq: Seq) -> Bool { leaving[cid]?.contains(seq) == true }

    /// Tells of a removal that the disk refused.
    func isVoid(_ row: [UInt8]) -> Bool {
        guard !stayed.isEmpty, case .ended(let message)? = Receipt(row), message.reason == .deviceRemoved else {
            return false
        }
        return stayed.contains(message.cid)
    }

    mutating func note(_ receipt: Receipt, app: Int) { fresh[app, default: []].append(receipt.bytes) }

    mutating func takeFresh() -> [Int: [[UInt8]]] {
        defer { fresh = [:] }
        return fresh
    }

    /// The disk refused them. Answers how many of them are given up, because too many wait already.
    mutating func keepForLater(_ rows: [[UInt8]], of lane: ReceiptLaneName) -> Int {
        let room = max(0, Self.againLimit - againRows)
        let kept = rows.suffix(room)
        guard !kept.isEmpty else { return rows.count }
        again.append((lane, Array(kept)))
        againRows += kept.count
        return rows.count - kept.count
    }

    mutating func takeAgain() -> [(lane: ReceiptLaneName, rows: [[UInt8]])] {
        defer { (again, againRows) = ([], 0) }
        return again
    }
}

extension ReceiptLaneName {
    /// Under which its record lies.
    var recordKey: [UInt8] { Array(app.text.utf8) }

    /// Under which a receipt lies. Keys of one lane are together, in the order of their numbers.
    func key(_ number: UInt64) -> [UInt8] {
        var writer = ByteWriter()
        writer.string(Array(app.text.utf8))
        writer.uint64(number)
        return writer.bytes
    }

    /// The number of a receipt of this lane; nil for a key of another.
    func number(_ key: [UInt8]) -> UInt64? {
        key.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard let app = reader.string(limit: 64), app.elementsEqual(self.app.text.utf8) else { return nil }
            let number = reader.uint64()
            return reader.isAtEnd ? number : nil
        }
    }
}

/// What a channel says of a lane's batch.
struct ReceiptNews: Sendable {
    let lane: ReceiptLaneName
    let progress: ReceiptProgress
}
