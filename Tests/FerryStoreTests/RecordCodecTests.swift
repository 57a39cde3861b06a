private import FerryCore
private import FerryStore
internal import Testing

struct RecordCodecTests {
    @Test func `Every record comes back as it was written, with its length`() {
        for record in Sample.records {
            var writer = ByteWriter([7])
            let count = RecordCodec.append(record, to: &writer)
            #expect(writer.bytes.count == count + 1)
            writer.bytes.dropFirst().withUnsafeBytes { #expect(RecordCodec.decode(record: $0) == record) }
        }
    }

    @Test func `An acknowledgement written in one piece is the record that it would be`() {
        for seq in [Seq(0), Seq(127), Seq(128), Seq(1 << 40), Seq(.max)] {
            var (whole, short) = (ByteWriter([7]), ByteWriter([7]))
            RecordCodec.append(.acknowledged(cid: Sample.cid(3), upTo: seq), to: &whole)
            RecordCodec.appendAcknowledged(Sample.cid(3), upTo: seq, to: &short)
            #expect(short.bytes == whole.bytes)
        }
    }

    @Test func `A message reads as a message, and another record does not`() {
        for record in Sample.records {
            var writer = ByteWriter()
            RecordCodec.append(record, to: &writer)
            let message = writer.bytes.withUnsafeBytes { RecordCodec.message(record: $0) }
            if case .messageAccepted(let accepted) = record {
                #expect(message == accepted)
                var direct = ByteWriter()
                RecordCodec.append(accepted, to: &direct)
                #expect(direct.bytes == writer.bytes)
            } else {
                #expect(message == nil)
            }
        }
    }

    @Test func `A cut or flipped record is no record`() {
        for record in Sample.records {
            var writer = ByteWriter()
            RecordCodec.append(record, to: &writer)
            for end in 0..<writer.bytes.count {
                writer.bytes[..<end].withUnsafeBytes { #expect(RecordCodec.decode(record: $0) == nil) }
            }
            for index in writer.bytes.indices {
                var flipped = writer.bytes
                flipped[index] ^= 1 << UInt8(index % 8)
                flipped.withUnsafeBytes { #expect(RecordCodec.decode(record: $0) == nil) }
            }
        }
    }

    @Test func `A body that decodes is the body that its record encodes to`() {
        // Past the checksum: what a fuzzer or a colliding checksum could bring in must neither trap nor have two forms.
        for record in Sample.records {
            var writer = ByteWriter()
            RecordCodec.append(record, to: &writer)
            let body = Array(writer.bytes.dropFirst(RecordCodec.headerBytes))
            for index in body.indices {
                for bit in 0..<8 {
                    var changed = body
                    changed[index] ^= 1 << UInt8(bit)
                    guard let other = changed.withUnsafeBytes({ RecordCodec.decode($0) }) else { continue }
                    var again = ByteWriter()
                    RecordCodec.append(other, to: &again)
                    #expect(Array(again.bytes.dropFirst(RecordCodec.headerBytes)) == changed)
                }
                body[..<index].withUnsafeBytes { #expect(RecordCodec.decode($0) == nil) }
            }
        }
    }

    @Test func `Eight zero bytes are no record`() {
        [UInt8](repeating: 0, count: 8).withUnsafeBytes { #expect(RecordCodec.decode(record: $0) == nil) }
    }

    @Test func `The bytes of a record are the ones that folders in the field hold`() {
        var writer = ByteWriter()
        RecordCodec.append(.acknowledged(cid: CID(Identifier128(high: 1, low: 2)), upTo: Seq(300)), to: &writer)
        #expect(
            Hexadecimal.encode(writer.bytes)
                == "00000013" + "ca34ddb2" + "05" + "0000000000000001" + "0000000000000002" + "ac02")
    }
}
