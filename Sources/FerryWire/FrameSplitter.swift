/// Cuts a stream into frames: type byte, length as a varint of at most 4 bytes, body. It holds nothing and copies nothing;
/// who reads the socket keeps the bytes of an unfinished frame and calls again when more have come.
package enum FrameSplitter {
    package enum Result {
        /// The frame has not come to its end.
        case incomplete
        /// The first frame. `body` points into the given bytes and lives as long as they do; `consumed` counts from
        /// the start of the bytes to the end of the frame.
        case frame(type: UInt8, body: UnsafeRawBufferPointer, consumed: Int)
        /// The length says more than `bodyLimit`: close 5004. Known before the body has come.
        case tooLarge
        /// The length is longer than 4 bytes or not in its shortest form: close 5000.
        case malformed
    }

    /// The body's limit is `Limits.deviceFrameBytes` at a gateway and `Limits.gatewayFrameBytes` at a device.
    package static func split(_ bytes: UnsafeRawBufferPointer, bodyLimit: Int) -> Result {
        guard bytes.count >= 2 else { return .incomplete }
        var length = 0
        var index = 1
        while true {
            guard index < bytes.count else { return index > 4 ? .malformed : .incomplete }
            guard index <= 4 else { return .malformed }
            let byte = bytes[index]
            length |= Int(byte & 0x7f) << (7 * (index - 1))
            index += 1
            guard byte & 0x80 == 0 else { continue }
            if byte == 0 && index > 2 { return .malformed }
            break
        }
        guard length <= bodyLimit else { return .tooLarge }
        let end = index + length
        guard end <= bytes.count else { return .incomplete }
        return .frame(type: bytes[0], body: UnsafeRawBufferPointer(rebasing: bytes[index..<end]), consumed: end)
    }
}
