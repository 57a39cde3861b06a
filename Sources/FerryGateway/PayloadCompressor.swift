internal import FerryCore
internal import FerryIO
internal import FerryStore
internal import FerryWire

/// Compresses payloads for devices that take it, one at a time and each by itself, so that one of these per shard is
/// enough and connections need no memory for it. Its own (about 330 KiB) it takes when the first payload is compressed.
struct PayloadCompressor: ~Copyable {
    /// The level that takes the least time; the better ones take a tenth to three times more for a few hundredths of the
    /// size (docs/performance/compression.md).
    private static let level = 1
    private var deflater: Deflater?
    /// The last payload that was compressed stands at its start.
    private(set) var output: [UInt8] = []

    /// What a push carries instead of `payload`: that many bytes of `output`. nil when it is not at least a tenth shorter.
    mutating func compress(_ payload: [UInt8]) -> Int? {
        guard payload.count <= Limits.payloadBytes, Self.mayShrink(payload) else { return nil }
        if deflater == nil {
            deflater = Deflater(level: Self.level)
            output = [UInt8](repeating: 0, count: Limits.payloadBytes)
        }
        // zlib gives up where its output would pass this.
        let most = payload.count - (payload.count + 9) / 10
        guard most > CompressedPayload.prefixCapacity else { return nil }
        let prefix = output.withUnsafeMutableBytes {
            CompressedPayload.writePrefix(to: $0, originalCount: payload.count)
        }
        let length = payload.withUnsafeBytes { payload in
            output.withUnsafeMutableBytes { output in
                deflater?.compress(payload, into: UnsafeMutableRawBufferPointer(rebasing: output[prefix..<most]))
            }
        }
        return length.map { prefix + $0 }
    }

    /// What a push carries instead of `payload`, for as long as many need it; nil when that is shorter than `threshold`, or
    /// does not shrink.
    mutating func compressed(_ payload: [UInt8], _ threshold: Int?) -> [UInt8]? {
        guard let threshold, payload.count >= threshold, let length = compress(payload) else { return nil }
        return Array(output[..<length])
    }

    /// Whether trying may be worth its time, judged by a thousand bytes from all over the payload. Images and what is
    /// compressed or encrypted already have all bytes equally often, and zlib takes longest to find out that it gains
    /// nothing there.
    ///
    /// Two bytes drawn from a payload are the same with the chance Σp²; a code for single bytes can gain a tenth only if
    /// that is above 2⁻⁷·². Such a payload may still hold repeats; those are forgone.
    static func mayShrink(_ payload: [UInt8]) -> Bool {
        let count = min(payload.count, sampleBytes)
        guard count > 1 else { return false }
        return withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 256) { counts in
            counts.initialize(repeating: 0)
            var pairs: UInt64 = 0
            for index in 0..<count {
                let byte = Int(payload[index * payload.count / count])
                // With each of the same that came before.
                pairs += UInt64(counts[byte])
                counts[byte] += 1
            }
            let all = UInt64(count) * UInt64(count - 1) / 2
            return pairs * 147 > all
        }
    }

    private static let sampleBytes = 1_024
}

extension Shard {
    /// Whether a payload of so many bytes is tried at all, for a device that takes it.
    func isWorthCompressing(_ bytes: Int) -> Bool { bytes >= environment.configuration.compressionBytes ?? .max }

    /// Sends a push with its payload compressed. false, and nothing is sent, where that is too short or does not shrink.
    mutating func sendCompressed(_ content: AcceptedMessage, isOffLine: Bool, _ slot: Int) -> Bool {
        guard isWorthCompressing(content.payload.count) else { return false }
        guard let length = compressor.compress(content.payload) else {
            counters.compression.unshrunk += 1
            return false
        }
        counters.compression.messages += 1
        counters.compression.bytesBefore += UInt64(content.payload.count)
        counters.compression.bytesAfter += UInt64(length)
        let flags = PushFrame.Flags(content.traits.kind, isOffLine: isOffLine).union(.compressed)
        let size = PushFrame.encodedSize(seq: content.seq, payloadCount: length)
        let output = compressor.output
        let fits = connections[slot].output.append(upTo: size) { buffer in
            output.withUnsafeBytes { output in
                PushFrame.write(
                    to: buffer, seq: content.seq, flags: flags, messageID: content.messageID, taskID: content.taskID,
                    payload: UnsafeRawBufferPointer(rebasing: output[..<length]))
            }
        }
        if fits { markDirty(slot) } else { closeOverfull(slot) }
        return true
    }
}
