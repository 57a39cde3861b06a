package import FerryCore

/// When the gateway itself was not there: nobody could be seen then, so that time counts against no device. The same holds for
/// a clock that stands ahead at a start, since that looks alike.
package struct Absences: Hashable, Sendable {
    package struct Gap: Hashable, Sendable {
        package let end: Instant
        package let length: Duration

        package init(end: Instant, length: Duration) {
            self.end = end
            self.length = length
        }
    }

    /// In the order of their ends, which are all different.
    package private(set) var gaps: [Gap] = []

    /// Shorter ones are not noted: a restart is none.
    package static let shortest = Duration.seconds(3_600)
    private static let mostGaps = 64

    package init() {}

    /// The last thing that is known to have happened was at `last`, and now the gateway is there again. Answers whether that is
    /// to be written down.
    package mutating func note(from last: Instant, until now: Instant) -> Bool {
        guard last > .distantPast, now - last >= Self.shortest else { return false }
        add(Gap(end: now, length: now - last))
        return true
    }

    /// What another shard wrote down, or this one before.
    package mutating func merge(_ other: Absences) {
        for gap in other.gaps { add(gap) }
    }

    private mutating func add(_ gap: Gap) {
        let place = gaps.firstIndex { gap.end <= $0.end } ?? gaps.endIndex
        if gaps.indices.contains(place), gaps[place].end == gap.end { return }
        gaps.insert(gap, at: place)
        // Of the two oldest one is made: who was seen between them is given too much time and never too little.
        while gaps.count > Self.mostGaps {
            gaps[1] = Gap(end: gaps[1].end, length: gaps[0].length + gaps[1].length)
            gaps.removeFirst()
        }
    }

    /// How long a device that was seen last at `seen` could have been seen since and was not.
    package func missed(since seen: Instant, now: Instant) -> Duration {
        var missed = now - seen
        for gap in gaps.reversed() {
            guard gap.end > seen else { break }
            missed -= gap.length
        }
        return missed
    }

    /// A time that is not before that of any device which has missed `period`: so long ago, and all gaps since then.
    package func limit(of period: Duration, now: Instant) -> Instant {
        var limit = now + (.zero - period)
        for gap in gaps.reversed() {
            guard gap.end > limit else { break }
            limit = limit + (.zero - gap.length)
        }
        return limit
    }
}

/// The row that keeps them.
extension Absences {
    private static let version: UInt8 = 1

    package var row: [UInt8] {
        var writer = ByteWriter()
        writer.byte(Self.version)
        writer.varint(UInt64(gaps.count))
        for gap in gaps {
            writer.varint(UInt64(max(0, gap.end.milliseconds)))
            writer.varint(UInt64(max(0, gap.length.inMilliseconds)))
        }
        return writer.bytes
    }

    /// nil when the row is none of this version.
    package init?(row: [UInt8]) {
        self.init()
        let isWhole = row.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard reader.byte() == Self.version, let count = reader.varint(), count <= UInt64(Self.mostGaps) else {
                return false
            }
            for _ in 0..<count {
                guard let end = reader.varint().flatMap({ Int64(exactly: $0) }),
                    let length = reader.varint().flatMap({ Int64(exactly: $0) }), length <= end
                else { return false }
                add(Gap(end: Instant(milliseconds: end), length: .milliseconds(length)))
            }
            return reader.isAtEnd
        }
        guard isWhole else { return nil }
    }
}
