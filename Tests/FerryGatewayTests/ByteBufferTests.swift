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
        defer { buffer.release() }
        var model: [UInt8] = []
        for step in 0..<500 {
            switch random(4) {
            case 0, 1:
                let bytes = (0..<random(700)).map { UInt8(truncatingIfNeeded: $0 + step) }
                buffer.append(bytes)
                model += bytes
            case 2:
                let count = random(model.count + 2)
                buffer.consume(count)
                model.removeFirst(min(count, model.count))
            default:
                buffer.append(upTo: 64) { room in
                    room.copyBytes(from: [1, 2, 3])
                    return 3
                }
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
        buffer.append([UInt8](repeating: 7, count: 1 << 20))
        #expect(buffer.bytes.baseAddress != nil)
        buffer.consume(1 << 20)
        #expect(buffer.bytes.baseAddress == nil)
    }
}
