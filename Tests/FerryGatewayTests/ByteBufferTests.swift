@testable internal import FerryGateway
internal import Testing

struct ByteBufferTests {
    /// A random walk beside a plain array.
    @Test(arguments: 0..<20) func `A buffer holds what an array would`(seed: UInt64) {
        var state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
        func random(_ limit: Int) -> Int {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return Int(state % UInt64(limit))
        }
        var buffer = ByteBuffer()
        var spare = SpareBlocks()
        defer { buffer.release() }
        var model: [UInt8] = []
        for step in 0..<500 {
            switch random(6) {
            case 4:
                let count = random(600)
                let fits = buffer.append(upTo: count, from: &spare) { room in
                    for place in room.indices { room[place] = UInt8(truncatingIfNeeded: place * step) }
                    return count
                }
                #expect(fits)
                model += (0..<count).map { UInt8(truncatingIfNeeded: $0 * step) }
            case 5:
                let count = random(model.count + 2)
                buffer.consume(count, into: &spare)
                model.removeFirst(min(count, model.count))
            case 0, 1:
                let bytes = (0..<random(700)).map { UInt8(truncatingIfNeeded: $0 + step) }
                let fits = buffer.append(bytes)
                #expect(fits)
                model += bytes
            case 2:
                let count = random(model.count + 2)
                buffer.consume(count)
                model.removeFirst(min(count, model.count))
            default:
                let fits = buffer.append(upTo: 64) { room in
                    room.copyBytes(from: [1, 2, 3])
                    return 3
                }
                #expect(fits)
                model += [1, 2, 3]
            }
            #expect(Array(buffer.bytes) == model)
            #expect(buffer.isEmpty == model.isEmpty)
        }
    }

    /// Elsewhere buffers kept the size of their largest burst for ever.
    @Test func `A buffer that is empty holds no memory`() {
        var buffer = ByteBuffer()
        #expect(buffer.bytes.baseAddress == nil)
        let fits = buffer.append([UInt8](repeating: 7, count: 1 << 20))
        #expect(fits)
        #expect(buffer.bytes.baseAddress != nil)
        buffer.consume(1 << 20)
        #expect(buffer.bytes.baseAddress == nil)
    }

    @Test func `Buffers that end leave their memory to those that begin, up to a bound`() {
        var spare = SpareBlocks()
        var buffers = [ByteBuffer](repeating: ByteBuffer(), count: 1_000)
        for place in buffers.indices {
            let fits = buffers[place].append(upTo: 400, from: &spare) { _ in 400 }
            #expect(fits && buffers[place].count == 400)
        }
        #expect(spare.count == 0)
        for place in buffers.indices { buffers[place].consume(400, into: &spare) }
        let kept = spare.count
        #expect(kept > 0 && kept < 1_000)
        let fits = buffers[0].append(upTo: 10, from: &spare) { _ in 10 }
        #expect(fits && spare.count == kept - 1)
        buffers[0].release()
        let large = buffers[1].append(upTo: 5_000, from: &spare) { _ in 5_000 }
        #expect(large && spare.count == kept - 1)
        buffers[1].consume(5_000, into: &spare)
        #expect(spare.count == kept - 1, "only blocks of the one size are kept")
    }

    /// Answers of two gigabytes once ended the process: the counts are of 32 bits.
    @Test func `More than a buffer holds is refused, and what it holds stays`() {
        var buffer = ByteBuffer()
        defer { buffer.release() }
        var taken = [buffer.append([1, 2, 3])]
        withUnsafeBytes(of: UInt64(0)) { few in
            // Never read: it is refused by its count alone.
            for count in [ByteBuffer.largest - 2, 1 << 31, Int.max] {
                taken.append(buffer.append(UnsafeRawBufferPointer(start: few.baseAddress, count: count)))
                taken.append(buffer.append(upTo: count) { _ in 1 })
            }
        }
        taken.append(buffer.append(upTo: -1) { _ in 1 })
        #expect(taken == [true] + Array(repeating: false, count: 7))
        #expect(Array(buffer.bytes) == [1, 2, 3])
        let fits = buffer.append([4])
        #expect(fits && Array(buffer.bytes) == [1, 2, 3, 4])
    }
}
