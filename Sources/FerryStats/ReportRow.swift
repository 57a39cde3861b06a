package import FerryCore

/// A row that a shard's book is kept in: under the number of the shard that wrote it, since a row is what one shard counted and
/// the sum over all rows of a name is the report.
package struct ReportRow: Hashable, Sendable {
    /// Whose row it is: the index of a partition that the shard owns, whatever the count of shards.
    package var writer: Int
    package var key: [UInt8]
    /// nil takes the row away.
    package var value: [UInt8]?

    package init(writer: Int, key: [UInt8], value: [UInt8]?) {
        self.writer = writer
        self.key = key
        self.value = value
    }
}

/// What a row is of.
enum ReportKey: Hashable {
    case task(AppID, Identifier128)
    case day(AppID, CalendarDay)

    var bytes: [UInt8] {
        var writer = ByteWriter()
        switch self {
        case .task(let app, let task):
            writer.byte(1)
            writer.string(app.text.utf8)
            writer.identifier(task)
        case .day(let app, let day):
            writer.byte(2)
            writer.string(app.text.utf8)
            writer.uint32(UInt32(bitPattern: day.number))
        }
        return writer.bytes
    }

    init?(_ bytes: [UInt8]) {
        let read = bytes.withUnsafeBytes { bytes -> ReportKey? in
            var reader = ByteReader(bytes)
            guard let kind = reader.byte(), let text = reader.string(limit: 64),
                let app = AppID(String(decoding: text, as: UTF8.self))
            else { return nil }
            switch kind {
            case 1:
                guard let task = reader.identifier(), reader.isAtEnd else { return nil }
                return .task(app, task)
            case 2:
                guard let number = reader.uint32(), number <= 1 << 24, reader.isAtEnd else { return nil }
                return .day(app, CalendarDay(number: Int32(number)))
            default: return nil
            }
        }
        guard let read else { return nil }
        self = read
    }
}

/// What is known of a task beside its counters.
package struct TaskTerms: Hashable, Sendable {
    package let task: TaskID
    package let acceptedAt: Instant
    /// The sender's `group_name`; empty for none.
    package let group: String

    package init(task: TaskID, acceptedAt: Instant, group: String = "") {
        self.task = task
        self.acceptedAt = acceptedAt
        self.group = group
    }
}

/// The values of rows: 1 byte version, then what the row is of.
enum ReportValue {
    private static let version: UInt8 = 1

    static func write(_ terms: TaskTerms, _ counters: ReportCounters) -> [UInt8] {
        var writer = ByteWriter([version])
        writer.uint64(UInt64(bitPattern: terms.acceptedAt.milliseconds))
        writer.varint(UInt64(terms.task.monthDay))
        writer.byte(terms.task.kind.rawValue)
        writer.string(terms.group.utf8)
        counters.write(to: &writer)
        return writer.bytes
    }

    static func write(_ day: DayCounters) -> [UInt8] {
        var writer = ByteWriter([version])
        day.write(to: &writer)
        return writer.bytes
    }

    static func task(_ value: [UInt8], _ task: Identifier128) -> (terms: TaskTerms, counters: ReportCounters)? {
        value.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard reader.byte() == version, let time = reader.uint64(), let monthDay = reader.varint(),
                monthDay <= 9_999, let kind = reader.byte().flatMap({ TaskID.Kind(rawValue: $0) }),
                let group = reader.string(limit: 1_024), let counters = ReportCounters(from: &reader), reader.isAtEnd
            else { return nil }
            let terms = TaskTerms(
                task: TaskID(task, monthDay: UInt16(monthDay), kind: kind),
                acceptedAt: Instant(milliseconds: Int64(bitPattern: time)),
                group: String(decoding: group, as: UTF8.self))
            return (terms, counters)
        }
    }

    static func day(_ value: [UInt8]) -> DayCounters? {
        value.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard reader.byte() == version, let day = DayCounters(from: &reader), reader.isAtEnd else { return nil }
            return day
        }
    }
}
