package import FerryCore

/// Messages that the device will not get.
package struct GapFrame: FrameBody, BitwiseCopyable {
    package static var type: FrameType { .gap }
    /// Its place in the stream; acknowledged like a message's.
    package var seq: Seq
    /// The last missing message; equal to `seq` in version 1.
    package var upTo: Seq
    /// How many are missing. It may count messages that the device got in an earlier session whose ack was lost.
    package var count: UInt64
    package var expired: UInt64
    package var overflowed: UInt64
    /// For reasons that this version does not know.
    package var other: UInt64

    package init(seq: Seq, upTo: Seq, count: UInt64, expired: UInt64 = 0, overflowed: UInt64 = 0, other: UInt64 = 0) {
        self.seq = seq
        self.upTo = upTo
        self.count = count
        self.expired = expired
        self.overflowed = overflowed
        self.other = other
    }

    package init(_ gap: Gap) {
        self.init(
            seq: gap.upTo, upTo: gap.upTo, count: UInt64(gap.count), expired: UInt64(gap.expired),
            overflowed: UInt64(gap.overflowed))
    }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        var reader = BodyReader(body)
        self.init(seq: Seq(try reader.varint()), upTo: Seq(try reader.varint()), count: try reader.varint())
        // Each round takes two bytes or more or ends in an error, so a huge number here costs no more than the body.
        var left = try reader.varint()
        while left > 0 {
            let reason = GapReason(rawValue: try reader.varint())
            add(try reader.varint(), for: reason)
            left -= 1
        }
        try reader.end()
    }

    private mutating func add(_ count: UInt64, for reason: GapReason?) {
        func saturating(_ sum: UInt64) -> UInt64 {
            let (value, overflow) = sum.addingReportingOverflow(count)
            return overflow ? .max : value
        }
        switch reason {
        case .expired: expired = saturating(expired)
        case .overflowed: overflowed = saturating(overflowed)
        case nil: other = saturating(other)
        }
    }

    /// Writes the reasons that are not zero. `other` has no code and is not written.
    package func writeBody(to writer: inout ByteWriter) {
        writer.varint(seq.rawValue)
        writer.varint(upTo.rawValue)
        writer.varint(count)
        let reasons = [(GapReason.expired, expired), (.overflowed, overflowed)].filter { $0.1 > 0 }
        writer.varint(UInt64(reasons.count))
        for (reason, count) in reasons {
            writer.varint(reason.rawValue)
            writer.varint(count)
        }
    }
}
