internal import CZlib

/// Compresses one buffer after the other, each into a zlib stream (RFC 1950) of its own: nothing of one is left for the next.
/// It holds about 264 KiB.
///
/// Invariant: `state` points to a stream that `deflateInit2_` has made and nobody has ended. It stays where it is, since
/// zlib keeps its address.
package struct Deflater: ~Copyable {
    private let state: UnsafeMutablePointer<z_stream>

    /// - Parameter level: 1 (fast)…9 (small).
    /// nil when there is no memory.
    package init?(level: Int) {
        state = .allocate(capacity: 1)
        state.initialize(to: z_stream())
        let made = deflateInit2_(
            state, Int32(clamping: level), Z_DEFLATED, 15, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size))
        guard made == Z_OK else {
            state.deallocate()
            return nil
        }
    }

    deinit {
        deflateEnd(state)
        state.deallocate()
    }

    /// Writes the whole stream to the start of `output` and answers its length; nil when it does not fit.
    package mutating func compress(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> Int?
    {
        guard deflateReset(state) == Z_OK, let room = output.baseAddress else { return nil }
        // zlib does not write to its input; C has no word for it here.
        state.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
        state.pointee.avail_in = UInt32(clamping: input.count)
        state.pointee.next_out = room.assumingMemoryBound(to: UInt8.self)
        state.pointee.avail_out = UInt32(clamping: output.count)
        let result = deflate(state, Z_FINISH)
        let length = output.count - Int(state.pointee.avail_out)
        // The pointers were lent for this call.
        state.pointee.next_in = nil
        state.pointee.next_out = nil
        return result == Z_STREAM_END ? length : nil
    }
}

/// The way back.
package enum Inflation {
    /// The content of a zlib stream that may be anybody's bytes. nil unless it is one whole stream without a preset
    /// dictionary, with the right checksum, that makes exactly `count` bytes and ends where `stream` ends. It never
    /// reserves or makes more than `count`, whatever the stream says.
    package static func inflate(_ stream: UnsafeRawBufferPointer, count: Int) -> [UInt8]? {
        guard count >= 0, let input = stream.baseAddress else { return nil }
        var isWhole = false
        // One more than an empty result has, since zlib wants an address.
        let content = [UInt8](unsafeUninitializedCapacity: max(count, 1)) { buffer, initialized in
            guard let room = buffer.baseAddress else { return }
            isWhole = inflate(input.assumingMemoryBound(to: UInt8.self), stream.count, to: room, count)
            initialized = isWhole ? count : 0
        }
        return isWhole ? content : nil
    }

    private static func inflate(
        _ input: UnsafePointer<UInt8>, _ inputCount: Int, to room: UnsafeMutablePointer<UInt8>, _ count: Int
    ) -> Bool {
        var state = z_stream()
        return withUnsafeMutablePointer(to: &state) { state in
            guard inflateInit2_(state, 15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
                return false
            }
            defer { inflateEnd(state) }
            state.pointee.next_in = UnsafeMutablePointer(mutating: input)
            state.pointee.avail_in = UInt32(clamping: inputCount)
            state.pointee.next_out = room
            state.pointee.avail_out = UInt32(clamping: count)
            return CZlib.inflate(state, Z_FINISH) == Z_STREAM_END && state.pointee.avail_out == 0
                && state.pointee.avail_in == 0
        }
    }
}
