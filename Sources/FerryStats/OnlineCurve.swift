package import FerryCore

/// How many devices of an app were online, every ten minutes of the last day. Where the gateway was not there to look there is
/// no point: none is made up. The shard that owns an app keeps its points.
package struct OnlineCurve: Sendable {
    package static let step: Int64 = 600_000
    private static let span: Int64 = 86_400_000
    /// How late a point may be taken: beyond that it would tell of another time.
    private static let patience: Int64 = 60_000

    /// By app; the times rise.
    private var points: [AppID: [(at: Instant, count: Int64)]] = [:]
    /// When the next point is to be taken.
    package private(set) var next: Instant

    package init(now: Instant) { next = Self.mark(after: now) }

    private static func mark(after time: Instant) -> Instant {
        Instant(milliseconds: (max(0, time.milliseconds) / step + 1) * step)
    }

    /// Called at `next` or later: takes a point of each app, unless it is too late for one. The rows to write, old ones that go
    /// among them, with their apps; `value` nil takes one away.
    package mutating func draw(
        _ apps: [AppID], now: Instant, online: (AppID) -> Int
    ) -> [(app: AppID, key: [UInt8], value: [UInt8]?)] {
        let mark = Instant(milliseconds: now.milliseconds / Self.step * Self.step)
        next = Self.mark(after: now)
        var rows: [(app: AppID, key: [UInt8], value: [UInt8]?)] = []
        for app in apps {
            var own = points[app] ?? []
            if now.milliseconds - mark.milliseconds <= Self.patience, own.last.map({ $0.at < mark }) ?? true {
                let count = Int64(online(app))
                own.append((mark, count))
                rows.append((app, Self.key(app, mark), Self.value(count)))
            }
            while let first = own.first, first.at.milliseconds <= now.milliseconds - Self.span {
                own.removeFirst()
                rows.append((app, Self.key(app, first.at), nil))
            }
            points[app] = own
        }
        return rows
    }

    /// A row that was found, in order of keys.
    package mutating func restore(key: [UInt8], value: [UInt8]) {
        let read = key.withUnsafeBytes { bytes -> (AppID, Instant)? in
            var reader = ByteReader(bytes)
            guard let text = reader.string(limit: 64), let app = AppID(String(decoding: text, as: UTF8.self)),
                let time = reader.uint64(), time <= UInt64(Int64.max), reader.isAtEnd
            else { return nil }
            return (app, Instant(milliseconds: Int64(time)))
        }
        let count = value.withUnsafeBytes { bytes -> Int64? in
            var reader = ByteReader(bytes)
            guard reader.byte() == 1, let count = reader.varint(), count <= 1 << 48, reader.isAtEnd else { return nil }
            return Int64(count)
        }
        guard let (app, time) = read, let count else { return }
        points[app, default: []].append((time, count))
    }

    /// The points of the day that ends now.
    package func json(_ app: AppID, now: Instant) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.name("online_statics")
        writer.beginObject()
        for point in points[app] ?? [] where point.at.milliseconds > now.milliseconds - Self.span {
            writer.name(String(point.at.milliseconds))
            writer.integer(point.count)
        }
        writer.endObject()
        writer.endObject()
        return writer.bytes
    }

    private static func key(_ app: AppID, _ time: Instant) -> [UInt8] {
        var writer = ByteWriter()
        writer.string(app.text.utf8)
        writer.uint64(UInt64(max(0, time.milliseconds)))
        return writer.bytes
    }

    private static func value(_ count: Int64) -> [UInt8] {
        var writer = ByteWriter()
        writer.byte(1)
        writer.varint(UInt64(max(0, count)))
        return writer.bytes
    }
}
