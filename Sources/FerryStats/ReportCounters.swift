package import FerryCore

/// What became of the messages of one task, or of one app on one day: accepted + carried = kept + the sum of `ended`.
package struct ReportCounters: Hashable, Sendable {
    /// Below zero only on a day that began between the acceptance of messages and the disk's refusal of them.
    package var accepted: Int64 = 0
    /// Messages that were kept on days that are forgotten, less those that ended since.
    package var carried: Int64 = 0
    /// By `EndReason.rawValue`, as far as any is above zero.
    package private(set) var ended: [Int64] = []
    // Wake-ups; of days only.
    package var stubsRequested: Int64 = 0
    package var stubsAccepted: Int64 = 0
    package var stubsRefused: Int64 = 0

    package init() {}

    package var endedCount: Int64 { ended.reduce(0, +) }
    package var kept: Int64 { accepted + carried - endedCount }

    package func ended(_ reason: EndReason) -> Int64 {
        let index = Int(reason.rawValue)
        return index < ended.count ? ended[index] : 0
    }

    package func ended(_ state: DeliveryState) -> Int64 {
        EndReason.allCases.reduce(0) { $0 + ($1.state == state ? ended($1) : 0) }
    }

    package mutating func end(_ reason: EndReason, _ count: Int64 = 1) {
        let index = Int(reason.rawValue)
        while ended.count <= index { ended.append(0) }
        ended[index] += count
    }

    package static func += (left: inout Self, right: Self) {
        left.accepted += right.accepted
        left.carried += right.carried
        for index in right.ended.indices {
            if index == left.ended.count { left.ended.append(0) }
            left.ended[index] += right.ended[index]
        }
        left.stubsRequested += right.stubsRequested
        left.stubsAccepted += right.stubsAccepted
        left.stubsRefused += right.stubsRefused
    }

    // MARK: - Bytes

    func write(to writer: inout ByteWriter) {
        writer.signed(accepted)
        writer.signed(carried)
        writer.varint(UInt64(ended.count))
        for count in ended { writer.signed(count) }
        writer.signed(stubsRequested)
        writer.signed(stubsAccepted)
        writer.signed(stubsRefused)
    }

    /// nil where the bytes are none, or tell of numbers that no gateway counts to.
    init?(from reader: inout ByteReader) {
        guard let accepted = reader.count(), let carried = reader.count(), let reasons = reader.varint(), reasons <= 256
        else { return nil }
        for _ in 0..<reasons {
            guard let count = reader.count() else { return nil }
            ended.append(count)
        }
        guard let requested = reader.count(), let taken = reader.count(), let refused = reader.count() else {
            return nil
        }
        self.accepted = accepted
        self.carried = carried
        stubsRequested = requested
        stubsAccepted = taken
        stubsRefused = refused
    }
}

extension ByteWriter {
    /// Small numbers of either sign are short.
    mutating func signed(_ value: Int64) { varint(UInt64(bitPattern: (value << 1) ^ (value >> 63))) }
}

extension ByteReader {
    mutating func signed() -> Int64? {
        varint().map { Int64(bitPattern: $0 >> 1) ^ -Int64(bitPattern: $0 & 1) }
    }

    /// One of which sums can be made without a look at the largest number there is.
    mutating func count() -> Int64? {
        guard let value = signed(), value.magnitude <= 1 << 48 else { return nil }
        return value
    }
}
