internal import FerryCore

/// What stands for a payload in a push with the flag `compressed`: the original's length, then one zlib stream of it.
/// Compressing and inflating are the business of who has zlib.
package enum CompressedPayload {
    /// More than the length in front ever takes.
    package static let prefixCapacity = ByteWriter.varintSize(UInt64(Limits.payloadBytes))

    /// Writes the length in front to the start of `buffer`, which has room for `prefixCapacity`; answers its bytes.
    /// - Precondition: `originalCount` is 0...`Limits.payloadBytes`.
    package static func writePrefix(to buffer: UnsafeMutableRawBufferPointer, originalCount: Int) -> Int {
        precondition(originalCount >= 0 && originalCount <= Limits.payloadBytes)
        var writer = RawWriter(buffer)
        writer.varint(UInt64(originalCount))
        return writer.offset
    }

    /// The original's length, which is judged here, before anything is inflated or reserved, and the stream.
    /// - Throws: 5000 for a length that is malformed, 5005 for one beyond a payload's.
    package static func split(
        _ payload: UnsafeRawBufferPointer
    ) throws(WireError) -> (originalCount: Int, stream: UnsafeRawBufferPointer) {
        var reader = ByteReader(payload)
        guard let count = reader.varint() else { throw .badVarint }
        guard count <= UInt64(Limits.payloadBytes) else {
            throw WireError(.fieldOutOfRange, "a compressed payload would be longer than a payload may be")
        }
        return (Int(count), UnsafeRawBufferPointer(rebasing: payload[(payload.count - reader.remaining)...]))
    }
}

extension PushFrame {
    /// The push with its original payload. The flag stays: it says how the message travelled.
    /// - Parameters:
    ///   - isAgreed: whether login and welcome of this connection both said so; without it a compressed payload is a
    ///     fault.
    ///   - inflate: answers the stream's content if it is a whole stream of exactly `count` bytes, else nil, and never
    ///     makes more than that.
    /// - Throws: 5000 or 5005, as `protocol-spec/chapters/11-compression.md` has it.
    package consuming func unpacked(
        isAgreed: Bool, inflate: (_ stream: UnsafeRawBufferPointer, _ count: Int) -> [UInt8]?
    ) throws(WireError) -> PushFrame {
        guard flags.contains(.compressed) else { return self }
        guard isAgreed else {
            throw WireError(.protocolError, "a payload is compressed, and that was not agreed")
        }
        let outcome = payload.withUnsafeBytes { bytes -> Result<[UInt8], WireError> in
            do throws(WireError) {
                let parts = try CompressedPayload.split(bytes)
                guard let original = inflate(parts.stream, parts.originalCount) else {
                    throw WireError(.protocolError, "a compressed payload is damaged")
                }
                return .success(original)
            } catch {
                return .failure(error)
            }
        }
        payload = try outcome.get()
        return self
    }
}
