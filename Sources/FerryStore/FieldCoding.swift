internal import FerryCore

/// The fields that records and table rows share.
extension ByteWriter {
    mutating func instant(_ instant: Instant) {
        varint(instant.zigzag)
    }

    /// 0 for none, else the environment and the bytes.
    mutating func token(_ token: PushToken?) {
        guard let token else { return byte(0) }
        byte(token.environment.rawValue)
        string(token.bytes)
    }

    mutating func task(_ task: TaskID) {
        identifier(task.value)
        varint(UInt64(task.monthDay))
        byte(task.kind.rawValue)
    }
}

extension ByteReader {
    mutating func instant() -> Instant? {
        varint().map { Instant(zigzag: $0) }
    }

    /// The outer nil says "unreadable", the inner one "no token".
    mutating func token() -> (value: PushToken?, Void)? {
        guard let kind = byte() else { return nil }
        if kind == 0 { return (nil, ()) }
        guard let environment = PushEnvironment(rawValue: kind), let bytes = octets(),
            let token = PushToken(environment: environment, bytes: bytes)
        else { return nil }
        return (token, ())
    }

    mutating func task() -> TaskID? {
        guard let value = identifier(), let day = varint(), let monthDay = UInt16(exactly: day), let raw = byte(),
            let kind = TaskID.Kind(rawValue: raw)
        else { return nil }
        return TaskID(value, monthDay: monthDay, kind: kind)
    }

    mutating func cid() -> CID? { identifier().map { CID($0) } }
    mutating func seq() -> Seq? { varint().map { Seq($0) } }
    mutating func generation() -> UInt32? { varint().flatMap { UInt32(exactly: $0) } }

    mutating func app() -> AppID? {
        octets().flatMap { String(validating: $0, as: UTF8.self) }.flatMap { AppID($0) }
    }

    /// A length and as many bytes, as far as there are any.
    mutating func octets() -> [UInt8]? { string(limit: remaining).map { [UInt8]($0) } }
}
