internal import FerryCore
internal import FerryRouting
internal import FerryStore

/// What a list task's devices get, once in memory for all shards that hold it.
final class TaskContent: Sendable {
    let task: ListTask
    let payload: [UInt8]
    let alert: OwnAlert?
    /// As the sender wished them: what way it goes to one device is in its record.
    let traits: MessageTraits
    /// Of `traits`; what is known of a message for its receipt takes no copy of it.
    let callback: [UInt8]

    init(_ task: ListTask, payload: [UInt8], alert: OwnAlert?, traits: MessageTraits = .none) {
        self.task = task
        self.payload = payload
        self.alert = alert
        self.traits = traits
        callback = Array((traits.callback ?? "").utf8)
    }

    /// What the record of a device to which it goes by this way says of it.
    func reference(_ route: DeliveryRoute) -> ContentReference {
        ContentReference(payloadBytes: task.payloadBytes, hasAlert: task.hasAlert, route: route)
    }

    /// What it takes of memory, about.
    var weight: Int { payload.count + (alert?.body.count ?? 0) + MemoryCost.order }

    // MARK: - Bytes

    private static let version: UInt8 = 1
    /// With traits in front.
    private static let versionWithTraits: UInt8 = 2
    private enum AlertForm {
        static let none: UInt8 = 0
        static let alert: UInt8 = 1
        static let background: UInt8 = 2
    }

    /// As it stands in its row.
    var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.bytes.reserveCapacity(weight)
        let traits = traits.encoded
        writer.byte(traits.isEmpty ? Self.version : Self.versionWithTraits)
        if !traits.isEmpty { writer.string(traits) }
        writer.string(payload)
        guard let alert else {
            writer.byte(AlertForm.none)
            return writer.bytes
        }
        writer.byte(alert.isBackground ? AlertForm.background : AlertForm.alert)
        writer.string(alert.body)
        writer.string((alert.collapseID ?? "").utf8)
        return writer.bytes
    }

    /// nil when the bytes are no content.
    convenience init?(_ task: ListTask, encoded: [UInt8]) {
        let parts: (payload: [UInt8], alert: OwnAlert?, traits: MessageTraits)? = encoded.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            var traits = MessageTraits.none
            switch reader.byte() {
            case Self.version: break
            case Self.versionWithTraits:
                guard let text = reader.string(limit: MessageTraits.encodedBytes),
                    let found = MessageTraits(encoded: text)
                else { return nil }
                traits = found
            default: return nil
            }
            guard let payload = reader.string(limit: Limits.payloadBytes),
                let form = reader.byte()
            else { return nil }
            guard form != AlertForm.none else { return reader.isAtEnd ? ([UInt8](payload), nil, traits) : nil }
            guard form <= AlertForm.background, let body = reader.string(limit: reader.remaining),
                let text = reader.string(limit: reader.remaining), reader.isAtEnd,
                let collapseID = String(validating: text, as: UTF8.self)
            else { return nil }
            return (
                [UInt8](payload),
                OwnAlert(
                    body: [UInt8](body), collapseID: collapseID.isEmpty ? nil : collapseID,
                    isBackground: form == AlertForm.background),
                traits
            )
        }
        guard let parts else { return nil }
        self.init(task, payload: parts.payload, alert: parts.alert, traits: parts.traits)
    }
}

/// Contents of tasks that one shard has in memory. When they are too many, those that were used least lately leave: they can
/// be read again.
struct TaskContentCache {
    private var entries: [Identifier128: (content: TaskContent, usedAt: UInt64)] = [:]
    private(set) var bytes = 0
    private var uses: UInt64 = 0
    private let limit: Int

    /// `limit` in bytes. One content is held even if it alone has more.
    init(limit: Int) { self.limit = limit }

    var count: Int { entries.count }

    mutating func find(_ task: Identifier128) -> TaskContent? {
        guard let content = entries[task]?.content else { return nil }
        uses += 1
        entries[task]?.usedAt = uses
        return content
    }

    mutating func add(_ content: TaskContent) {
        let task = content.task.taskID.value
        uses += 1
        let old = entries.updateValue((content, uses), forKey: task)
        bytes += content.weight - (old?.content.weight ?? 0)
        if bytes > limit { thin() }
    }

    mutating func remove(_ task: Identifier128) {
        if let old = entries.removeValue(forKey: task) { bytes -= old.content.weight }
    }

    /// To three quarters, so that it is not done at each `add`.
    private mutating func thin() {
        for (task, _) in entries.sorted(by: { $0.value.usedAt < $1.value.usedAt }).dropLast() {
            guard bytes > limit / 4 * 3 else { return }
            remove(task)
        }
    }
}
