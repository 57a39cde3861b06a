private import FerryCore
internal import FerryTestSupport
internal import Testing

struct ByteCodingTests {
    /// Lends `bytes` to one read.
    private static func read<Value>(_ bytes: [UInt8], _ body: (inout ByteReader) -> Value) -> (value: Value, left: Int)
    {
        bytes.withUnsafeBytes { buffer in
            var reader = ByteReader(buffer)
            let value = body(&reader)
            return (value, reader.remaining)
        }
    }

    private static let numbers: [UInt64] =
        [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, .max, .max - 1] + (0..<64).flatMap { [1 << $0, (1 << $0) - 1] }

    @Test func `What is written to memory is what is written to bytes, digits are those of everybody`() {
        for number in Self.numbers {
            withUnsafeTemporaryAllocation(byteCount: 80, alignment: 8) { room in
                var raw = RawWriter(room)
                var writer = ByteWriter()
                raw.byte(7)
                raw.uint32(UInt32(truncatingIfNeeded: number))
                raw.varint(number)
                raw.identifier(Identifier128(high: number, low: ~number))
                raw.string([1, 2, 3])
                raw.patch(0, 8)
                writer.byte(8)
                writer.uint32(UInt32(truncatingIfNeeded: number))
                writer.varint(number)
                writer.identifier(Identifier128(high: number, low: ~number))
                writer.string([1, 2, 3])
                #expect(Array(raw.written) == writer.bytes)
                let start = raw.offset
                raw.hexadecimal(number &* 0x9e37_79b9_7f4a_7c15)
                var digits = ByteWriter()
                digits.uint64(number &* 0x9e37_79b9_7f4a_7c15)
                #expect(Array(raw.written[start...]) == Array(Hexadecimal.encode(digits.bytes).utf8))
            }
        }
    }

    @Test func `What is written is read, and takes the bytes that it says`() {
        for number in Self.numbers {
            var writer = ByteWriter()
            writer.varint(number)
            #expect(writer.bytes.count == ByteWriter.varintSize(number))
            let varint = Self.read(writer.bytes) { $0.varint() }
            #expect(varint.value == number && varint.left == 0)
            writer = ByteWriter()
            writer.byte(7)
            writer.uint32(UInt32(truncatingIfNeeded: number))
            writer.uint64(number)
            writer.identifier(Identifier128(high: number, low: ~number))
            writer.string("häfen".utf8)
            writer.raw([1, 2])
            writer.bytes.withUnsafeBytes { buffer in
                var reader = ByteReader(buffer)
                #expect(reader.byte() == 7)
                #expect(reader.uint32() == UInt32(truncatingIfNeeded: number))
                #expect(reader.uint64() == number)
                #expect(reader.identifier() == Identifier128(high: number, low: ~number))
                #expect(reader.string(limit: 6).map { String(decoding: $0, as: UTF8.self) } == "häfen")
                #expect(reader.raw(2).map(Array.init) == [1, 2])
                #expect(reader.isAtEnd)
            }
        }
    }

    @Test func `Numbers are big-endian, varints little groups first`() {
        var writer = ByteWriter([0xff])
        writer.uint32(0x0102_0304)
        writer.uint64(0x0506_0708_090a_0b0c)
        writer.varint(300)
        #expect(Hexadecimal.encode(writer.bytes) == "ff0102030405060708090a0b0cac02")
    }

    @Test func `What ends early is nil and moves nothing`() {
        for count in 0..<16 {
            let bytes = [UInt8](repeating: 0xff, count: count)
            #expect(Self.read(bytes) { $0.identifier() } == (nil, count))
            if count < 8 { #expect(Self.read(bytes) { $0.uint64() } == (nil, count)) }
            if count < 4 { #expect(Self.read(bytes) { $0.uint32() } == (nil, count)) }
            #expect(Self.read(bytes) { $0.varint() } == (nil, count), "a varint that never ends")
            #expect(Self.read(bytes) { $0.raw(count + 1) == nil }.left == count)
            #expect(Self.read(bytes) { $0.raw(-1) == nil }.left == count)
        }
        #expect(Self.read([]) { $0.byte() } == (nil, 0))
    }

    @Test(arguments: [
        [0x80, 0x00], [0xff, 0x80, 0x00], [0x80], [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02],
        [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
    ])
    func `A varint that is not minimal, cut or past 64 bits is nil`(_ bytes: [UInt8]) {
        #expect(Self.read(bytes) { $0.varint() } == (nil, bytes.count))
    }

    @Test func `A string longer than its limit or its bytes is nil and moves nothing`() {
        #expect(Self.read([3, 1, 2, 3]) { $0.string(limit: 3).map(Array.init) } == ([1, 2, 3], 0))
        #expect(Self.read([3, 1, 2, 3]) { $0.string(limit: 2).map(Array.init) } == (nil, 4))
        #expect(Self.read([4, 1, 2, 3]) { $0.string(limit: 9).map(Array.init) } == (nil, 4))
        let huge: [UInt8] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 1]
        #expect(Self.read(huge) { $0.string(limit: .max).map(Array.init) } == (nil, huge.count))
        #expect(Self.read([0]) { $0.string(limit: 0).map(Array.init) } == ([], 0))
    }

    @Test(arguments: Effort.seeds(20))
    func `Bytes of nobody's making never trap, and a varint that is read is the one that would be written`(
        _ seed: UInt64
    ) {
        var random = SplitMix(seed: seed)
        for _ in 0..<200 {
            // Few values, so that varints and lengths often fit.
            let bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                [0, 1, 2, 16, 0x7f, 0x80, 0x81, 0xff].randomElement(using: &random) ?? UInt8(0)
            }
            bytes.withUnsafeBytes { buffer in
                var reader = ByteReader(buffer)
                for _ in 0..<20 {
                    let start = reader.offset
                    let isNil: Bool
                    switch UInt8.random(in: 0..<7, using: &random) {
                    case 0: isNil = reader.byte() == nil
                    case 1: isNil = reader.uint32() == nil
                    case 2: isNil = reader.uint64() == nil
                    case 3: isNil = reader.identifier() == nil
                    case 4: isNil = reader.raw(Int.random(in: -2...50, using: &random)) == nil
                    case 5: isNil = reader.string(limit: Int.random(in: 0...20, using: &random)) == nil
                    default:
                        let value = reader.varint()
                        isNil = value == nil
                        if let value {
                            var writer = ByteWriter()
                            writer.varint(value)
                            #expect(writer.bytes == Array(bytes[start..<reader.offset]))
                        }
                    }
                    #expect(reader.offset <= bytes.count && reader.offset >= start)
                    #expect(!isNil || reader.offset == start, "a failed read moves nothing")
                }
            }
        }
    }
}
