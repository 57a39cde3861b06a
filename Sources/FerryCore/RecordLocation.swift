/// Where a record of the journal lies. Offsets count from the start of the segment's file.
package struct RecordLocation: Hashable, Sendable, BitwiseCopyable {
    /// 0 is no segment: the record is in the tables.
    package var segment: UInt32
    package var offset: UInt32
    /// Of the whole record with its header, in bytes.
    package var length: UInt32

    package init(segment: UInt32, offset: UInt32, length: UInt32) {
        self.segment = segment
        self.offset = offset
        self.length = length
    }
}
