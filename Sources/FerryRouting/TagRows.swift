package import FerryCore

/// The rows of the parts of a push to an audience: one with the devices of a part, one with how far it is.
extension TagExpansion {
    private static let version: UInt8 = 2
    /// What stands in an audience's row beside its devices is shorter.
    private static let headBytes = 8_192

    /// So many devices have room in a row of `bytes`.
    package static func mostTargets(inRowOf bytes: Int) -> Int { max(1, (bytes - headBytes) / 16) }

    /// The devices of one partition, in pieces of at most `most`.
    package static func parts(of partition: Partition, _ cids: [CID], most: Int) -> [Part] {
        stride(from: 0, to: cids.count, by: max(1, most)).enumerated().map { piece, first in
            Part(
                partition: partition, piece: UInt16(truncatingIfNeeded: piece),
                cids: Array(cids[first..<min(cids.count, first + max(1, most))]), done: 0)
        }
    }

    // MARK: - Keys

    package static func rowKey(_ task: Identifier128, piece: UInt16) -> [UInt8] {
        task.bytes + (piece == 0 ? [] : [UInt8(piece >> 8), UInt8(piece & 0xff)])
    }

    /// nil when the bytes are no such key.
    package static func read(key: [UInt8]) -> (task: Identifier128, piece: UInt16)? {
        guard key.count == 16 || key.count == 18, let task = Identifier128(bytes: Array(key.prefix(16))) else {
            return nil
        }
        let piece = key.dropFirst(16).reduce(UInt16(0)) { $0 << 8 | UInt16($1) }
        return key.count == 18 && piece == 0 ? nil : (task, piece)
    }

    // MARK: - Audiences

    /// The devices of a part, with what a start must know of the task.
    package static func audienceRow(_ part: Part, of content: ListTask, speed: Int64) -> [UInt8] {
        var writer = ByteWriter()
        writer.bytes.reserveCapacity(part.cids.count * 16 + headBytes)
        writer.byte(version)
        writer.string(content.encoded)
        writer.varint(UInt64(max(0, speed)))
        writer.varint(UInt64(part.cids.count))
        for cid in part.cids { writer.identifier(cid.value) }
        return writer.bytes
    }

    package struct Audience: Hashable, Sendable {
        package let content: ListTask
        package let speed: Int64
        package let cids: [CID]
    }

    /// nil when the bytes are no such row.
    package static func audience(_ row: [UInt8]) -> Audience? {
        row.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard reader.byte() == version, let text = reader.string(limit: reader.remaining),
                let content = ListTask([UInt8](text)),
                let speed = reader.varint().flatMap({ Int64(exactly: $0) }), let count = reader.varint(),
                count == UInt64(reader.remaining / 16), reader.remaining % 16 == 0
            else { return nil }
            var cids: [CID] = []
            cids.reserveCapacity(Int(count))
            while let cid = reader.identifier() { cids.append(CID(cid)) }
            return Audience(content: content, speed: speed, cids: cids)
        }
    }

    // MARK: - Cursors

    /// How far a part is, and what the last step did to it: the facts of that a crash may have lost, those of earlier ones not.
    package struct Cursor: Hashable, Sendable {
        /// A device that was passed over.
        package struct LeftOut: Hashable, Sendable {
            /// Index among the part's devices.
            package let place: Int
            package let seq: Seq
            package let reason: EndReason

            package init(place: Int, seq: Seq, reason: EndReason) {
                self.place = place
                self.seq = seq
                self.reason = reason
            }
        }

        package let done: Int
        /// The first of the last step, at most `done`.
        package let first: Int
        package let at: Instant
        package let leftOut: [LeftOut]

        package init(done: Int, first: Int, at: Instant, leftOut: [LeftOut]) {
            self.done = done
            self.first = first
            self.at = at
            self.leftOut = leftOut
        }
    }

    package static func cursorRow(_ cursor: Cursor) -> [UInt8] {
        var writer = ByteWriter()
        writer.byte(version)
        writer.varint(UInt64(max(0, cursor.done)))
        writer.varint(UInt64(max(0, cursor.first)))
        writer.uint64(UInt64(bitPattern: cursor.at.milliseconds))
        writer.varint(UInt64(cursor.leftOut.count))
        for one in cursor.leftOut {
            writer.varint(UInt64(max(0, one.place)))
            writer.varint(one.seq.rawValue)
            writer.byte(one.reason.rawValue)
        }
        return writer.bytes
    }

    /// nil when the bytes are no such row.
    package static func cursor(_ row: [UInt8]) -> Cursor? {
        row.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard reader.byte() == version, let done = reader.varint().flatMap({ Int(exactly: $0) }),
                let first = reader.varint().flatMap({ Int(exactly: $0) }), first <= done, let at = reader.uint64(),
                let count = reader.varint(), count <= UInt64(reader.remaining)
            else { return nil }
            var leftOut: [Cursor.LeftOut] = []
            for _ in 0..<count {
                guard let place = reader.varint().flatMap({ Int(exactly: $0) }), (first..<done).contains(place),
                    let seq = reader.varint(), let reason = reader.byte().flatMap({ EndReason(rawValue: $0) })
                else { return nil }
                leftOut.append(Cursor.LeftOut(place: place, seq: Seq(seq), reason: reason))
            }
            guard reader.isAtEnd else { return nil }
            return Cursor(
                done: done, first: first, at: Instant(milliseconds: Int64(bitPattern: at)), leftOut: leftOut)
        }
    }
}
