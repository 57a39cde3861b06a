internal import FerryCore
internal import FerryIO

/// Kept messages by reference, from wherever they lie now.
enum MessageReading {
    /// The accept record's body in its segment's file; nil when it is not there as the reference says.
    static func body(of reference: MessageReference, in file: any DiskFile) throws(StoreFailure) -> [UInt8]? {
        // A record that claims more was never written.
        guard reference.location.length <= UInt32(Journal.largestBatch) else { return nil }
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try file.read(Int(reference.location.length), at: Int(reference.location.offset))
        } catch {
            throw StoreFailure(error)
        }
        return bytes.withUnsafeBytes { buffer in
            guard let body = RecordCodec.body(of: buffer), let fields = AcceptedFields(body: body),
                fields.cid == reference.cid, fields.seq == reference.seq
            else { return nil }
            return [UInt8](body)
        }
    }

    /// nil when the message is neither in its segment nor in the tables.
    static func message(
        _ reference: MessageReference, files: SegmentFiles, tables: any Tables
    ) throws(StoreFailure) -> AcceptedMessage? {
        // A segment leaves the list of files only after its rows are in the tables.
        if let file = files[reference.location.segment] {
            guard let body = try body(of: reference, in: file) else {
                throw StoreFailure(
                    .corrupted,
                    "The message \(reference.seq) of device \(reference.cid) cannot be read from "
                        + SegmentHeader.fileName(reference.location.segment))
            }
            return body.withUnsafeBytes { RecordCodec.message($0) }
        }
        guard let row = try tables.get(.queue, QueueRow.key(reference.cid, reference.seq)) else { return nil }
        return row.withUnsafeBytes { RecordCodec.message($0) }
    }
}
