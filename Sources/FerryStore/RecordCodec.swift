package import FerryCore

/// Records as bytes: 4 bytes length of the body, 4 bytes CRC-32 of the body, the body (1 byte kind, then its fields).
package enum RecordCodec {
    package static let headerBytes = 8

    /// Appends `record` and answers how many bytes it took.
    @discardableResult
    package static func append(_ record: Record, to writer: inout ByteWriter) -> Int {
        0
    }
}
