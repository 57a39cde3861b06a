internal import FerryCore
internal import FerryReceipts

/// What a shard has for the receipts of its devices: the names of kept messages of apps that want receipts, what was noted in
/// this turn, and the lanes.
struct ReceiptDesk {
    struct Key: Hashable {
        let cid: CID
        let seq: Seq
    }

    /// By the app's number in the device table; nil: it wants none. Apps behind the last want none either.
    private let targets: [ReceiptTarget?]
    /// Some app wants receipts.
    let isActive: Bool
    /// Of kept messages, for apps that want receipts.
    private var names: [Key: MessageName] = [:]
    /// Noted and not on its way to the disk yet, by app number.
    private(set) var fresh: [Int: [[UInt8]]] = [:]
    var lanes: [ReceiptLaneName: ReceiptLane] = [:]
    private(set) var nameBytes = 0
    /// What the disk refused: receipts, and numbers of rows that were to go.
    var again: [(lane: ReceiptLaneName, rows: [[UInt8]])] = []
    var goneAgain: [(lane: ReceiptLaneName, numbers: [UInt64])] = []
    /// Found at the start and not looked at yet.
    var unpumped: [ReceiptLaneName] = []
    /// Devices whose removal is on its way to the disk, and of which messages it tells.
    private var leaving: [CID: Set<Seq>] = [:]
    /// Those whose removal was refused and has not begun anew.
    private var stayed: Set<CID> = []
    /// Lost because too many waited for a disk that refused them.
    var lost: UInt64 = 0

    /// What one name costs with its place in the table.
    private static let bytesPerName = 128
    /// Of one app in `fresh`: reached only while the disk refuses.
    static let freshLimit = 65_536

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

    mutating func name(_ key: Key, _ name: MessageName) {
        names[key] = name
        nameBytes += Self.bytesPerName + name.callback.count
    }

    mutating func takeName(_ key: Key) -> MessageName? {
        guard let name = names.removeValue(forKey: key) else { return nil }
        nameBytes -= Self.bytesPerName + name.callback.count
        return name
    }

    func name(of key: Key) -> MessageName? { names[key] }

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

    mutating func note(_ receipt: Receipt, app: Int) { add([receipt.bytes], app: app) }

    mutating func add(_ rows: [[UInt8]], app: Int) {
        guard fresh[app, default: []].count + rows.count <= Self.freshLimit else {
            lost += UInt64(rows.count)
            return
        }
        fresh[app, default: []].append(contentsOf: rows)
    }

    mutating func takeFresh() -> [Int: [[UInt8]]] {
        defer { fresh = [:] }
        return fresh
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
