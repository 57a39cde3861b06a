internal import FerryCore
internal import FerryIO
internal import FerryWire

/// Sixteen hex digits: when a message was due, in nanoseconds of this process's clock.
enum BenchStamp {
    static let bytes = 16
    /// What fills the payload of a message for everybody; those for one device have something else.
    static let broadcastMark = "b"

    static func write(_ value: UInt64, to bytes: UnsafeMutableRawBufferPointer, at offset: Int) {
        for position in 0..<16 {
            let nibble = UInt8(truncatingIfNeeded: value >> UInt64(60 - 4 * position)) & 15
            bytes[offset + position] = nibble < 10 ? 48 + nibble : 87 + nibble
        }
    }

    static func text(_ value: UInt64) -> String {
        var digits = [UInt8](repeating: 0, count: bytes)
        digits.withUnsafeMutableBytes { write(value, to: $0, at: 0) }
        return String(decoding: digits, as: UTF8.self)
    }

    struct Reading {
        let due: UInt64
        let isBroadcast: Bool
    }

    /// nil when the payload is not of this bench's making.
    static func read(_ payload: UnsafeRawBufferPointer) -> Reading? {
        guard payload.count >= bytes else { return nil }
        var value: UInt64 = 0
        for position in 0..<bytes {
            switch payload[position] {
            case let digit where digit >= 48 && digit <= 57: value = value << 4 | UInt64(digit - 48)
            case let digit where digit >= 97 && digit <= 102: value = value << 4 | UInt64(digit - 87)
            default: return nil
            }
        }
        return Reading(due: value, isBroadcast: payload.count > bytes && payload[bytes] == 98)
    }
}

/// What the bench looks at of a push frame. By hand, since decoding into a `PushFrame` would copy the payload, to which this
/// points: it is gone when the frame is.
struct BenchPush {
    let seq: UInt64
    let flags: PushFrame.Flags
    let payload: UnsafeRawBufferPointer

    static func read(_ body: UnsafeRawBufferPointer) -> BenchPush? {
        var reader = ByteReader(body)
        guard let seq = reader.varint(), let flags = reader.byte(), reader.raw(16) != nil,
            reader.string(limit: WireLimits.taskIDBytes) != nil, let payload = reader.string(limit: Limits.payloadBytes)
        else { return nil }
        return BenchPush(seq: seq, flags: PushFrame.Flags(rawValue: flags), payload: payload)
    }
}

/// A push request whose bytes are all fixed but three fields of fixed width: filling them in is all that a message costs.
struct BenchTemplate {
    private let bytes: [UInt8]
    private let requestOffset: Int
    private let deviceOffset: Int
    private let stampOffset: Int

    init(_ settings: BenchSettings, token: String) {
        // The run's part of request ids, so that runs do not repeat one another's.
        let run = Hexadecimal.encode(Cryptography.random(6))
        let zeros = String(repeating: "0", count: 16)
        let requestStart = "{\"request_id\":\"\(run)"
        let deviceStart = requestStart + zeros + "\",\"audience\":{\"cid\":[\""
        let stampStart = deviceStart + zeros + zeros + "\"]},\"push_message\":{\"transmission\":\""
        let filler = String(repeating: "x", count: settings.payloadBytes - BenchStamp.bytes)
        let body = stampStart + zeros + filler + "\"}}"
        let head = """
            POST /v2/\(settings.appID)/push/single/cid HTTP/1.1\r
            Host: \(settings.http)\r
            Content-Type: application/json;charset=utf-8\r
            Content-Length: \(body.utf8.count)\r
            token: \(token)\r
            \r

            """
        bytes = Array((head + body).utf8)
        requestOffset = head.utf8.count + requestStart.utf8.count
        deviceOffset = head.utf8.count + deviceStart.utf8.count
        stampOffset = head.utf8.count + stampStart.utf8.count
    }

    func append(to output: inout [UInt8], number: UInt64, device: Identifier128, due: UInt64) {
        let start = output.count
        output.append(contentsOf: bytes)
        output.withUnsafeMutableBytes { output in
            BenchStamp.write(number, to: output, at: start + requestOffset)
            BenchStamp.write(device.high, to: output, at: start + deviceOffset)
            BenchStamp.write(device.low, to: output, at: start + deviceOffset + 16)
            BenchStamp.write(due, to: output, at: start + stampOffset)
        }
    }
}

/// The same for batches: entries of one size, and around them a request whose length follows their number.
struct BenchBatchTemplate {
    private let entry: [UInt8]
    private let requestOffset: Int
    private let deviceOffset: Int
    private let stampOffset: Int
    private let head: [UInt8]
    private let token: [UInt8]
    private static let opening = Array("{\"is_async\":false,\"msg_list\":[".utf8)
    private static let closing = Array("]}".utf8)

    init(_ settings: BenchSettings, token: String) {
        let run = Hexadecimal.encode(Cryptography.random(6))
        let zeros = String(repeating: "0", count: 16)
        let requestStart = ",{\"request_id\":\"\(run)"
        let deviceStart = requestStart + zeros + "\",\"audience\":{\"cid\":[\""
        let stampStart = deviceStart + zeros + zeros + "\"]},\"push_message\":{\"transmission\":\""
        let filler = String(repeating: "x", count: settings.payloadBytes - BenchStamp.bytes)
        entry = Array((stampStart + zeros + filler + "\"}}").utf8)
        requestOffset = requestStart.utf8.count
        deviceOffset = deviceStart.utf8.count
        stampOffset = stampStart.utf8.count
        head = Array(
            """
            POST /v2/\(settings.appID)/push/single/batch/cid HTTP/1.1\r
            Host: \(settings.http)\r
            Content-Type: application/json;charset=utf-8\r
            Content-Length:\u{20}
            """.utf8)
        self.token = Array("\r\ntoken: \(token)\r\n\r\n".utf8)
    }

    /// One message more; a comma stands before each.
    func append(to entries: inout [UInt8], number: UInt64, device: Identifier128, due: UInt64) {
        let start = entries.count
        entries.append(contentsOf: entry)
        entries.withUnsafeMutableBytes { entries in
            BenchStamp.write(number, to: entries, at: start + requestOffset)
            BenchStamp.write(device.high, to: entries, at: start + deviceOffset)
            BenchStamp.write(device.low, to: entries, at: start + deviceOffset + 16)
            BenchStamp.write(due, to: entries, at: start + stampOffset)
        }
    }

    /// Makes a request of the entries and empties them.
    func close(_ entries: inout [UInt8], into output: inout [UInt8]) {
        let length = Self.opening.count + entries.count - 1 + Self.closing.count
        output.append(contentsOf: head)
        output.append(contentsOf: String(length).utf8)
        output.append(contentsOf: token)
        output.append(contentsOf: Self.opening)
        output.append(contentsOf: entries.dropFirst())
        output.append(contentsOf: Self.closing)
        entries.removeAll(keepingCapacity: true)
    }
}
