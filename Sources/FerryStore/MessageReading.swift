internal import FerryCore
internal import FerryIO

/// Kept messages by reference, from wherever they lie now.
enum MessageReading {
    /// Where the record ends in its segment's file; where it starts, for one that was never written: it claims too much.
    static func end(of reference: MessageReference) -> Int {
        let length = reference.location.length
        return Int(reference.location.offset) + (length <= UInt32(Journal.largestBatch) ? Int(length) : 0)
    }

    /// Lends the bodies of accept records that lie between `start` and `end` of their segment's file; nil for one that is not
    /// there as its reference says.
    static func bodies(
        of references: some Sequence<MessageReference>, in file: any DiskFile, from start: Int, to end: Int,
        _ visit: (MessageReference, UnsafeRawBufferPointer?) -> Void
    ) throws(StoreFailure) {
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try file.read(end - start, at: start)
        } catch {
            throw StoreFailure(error)
        }
        bytes.withUnsafeBytes { buffer in
            for reference in references {
                let first = Int(reference.location.offset) - start
                let last = Self.end(of: reference) - start
                guard last <= buffer.count,
                    let body = RecordCodec.body(of: UnsafeRawBufferPointer(rebasing: buffer[first..<last])),
                    let fields = AcceptedFields(body: body), fields.cid == reference.cid, fields.seq == reference.seq
                else {
                    visit(reference, nil)
                    continue
                }
                visit(reference, body)
            }
        }
    }

    /// nil when the message is neither in its segment nor in the tables.
    static func message(
        _ reference: MessageReference, files: SegmentFiles, tables: any Tables
    ) throws(StoreFailure) -> AcceptedMessage? {
        // A segment leaves the list of files only after its rows are in the tables.
        if let file = files[reference.location.segment] {
            var message: AcceptedMessage?
            let start = Int(reference.location.offset)
            try bodies(of: CollectionOfOne(reference), in: file, from: start, to: end(of: reference)) { _, body in
                message = body.flatMap { RecordCodec.message($0) }
            }
            guard let message else {
                throw StoreFailure(
                    .corrupted,
                    "The message \(reference.seq) of device \(reference.cid) cannot be read from "
                        + SegmentHeader.fileName(reference.location.segment))
            }
            return message
        }
        guard let row = try tables.get(.queue, QueueRow.key(reference.cid, reference.seq)) else { return nil }
        return row.withUnsafeBytes { RecordCodec.message($0) }
    }
}
