package import FerryCore

/// The answer to a single push that was taken, whole and in one go: the one that a gateway gives most. It is what
/// `APIAnswer.pushed` comes to.
package struct PushedResponse: Hashable, Sendable, BitwiseCopyable {
    package let task: TaskID
    package let cid: CID
    package let isOnline: Bool

    package init(task: TaskID, cid: CID, isOnline: Bool) {
        self.task = task
        self.cid = cid
        self.isOnline = isOnline
    }

    /// Appends the answer's bytes. Without `includesBody` only the body's length is told.
    package func encode(into bytes: inout [UInt8], keepAlive: Bool, includesBody: Bool = true) {
        let status: StaticString = isOnline ? #"":"successed_online"}}}"# : #"":"successed_offline"}}}"#
        let taskBytes = task.textCount
        let length =
            Self.before.utf8CodeUnitCount + taskBytes + Self.between.utf8CodeUnitCount + 32
            + status.utf8CodeUnitCount
        bytes.reserveCapacity(bytes.count + 160 + length)
        bytes.append(contentsOf: Self.head.utf8)
        bytes.append(0x30 + UInt8(truncatingIfNeeded: length / 100 % 10))
        bytes.append(0x30 + UInt8(truncatingIfNeeded: length / 10 % 10))
        bytes.append(0x30 + UInt8(truncatingIfNeeded: length % 10))
        bytes.append(contentsOf: keepAlive ? Self.keep.utf8 : Self.close.utf8)
        guard includesBody else { return }
        bytes.append(contentsOf: Self.before.utf8)
        task.append(to: &bytes)
        bytes.append(contentsOf: Self.between.utf8)
        Hexadecimal.append(cid.value, to: &bytes)
        bytes.append(contentsOf: status.utf8)
    }

    private static let head: StaticString =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json;charset=utf-8\r\nContent-Length: "
    private static let keep: StaticString = "\r\nConnection: keep-alive\r\n\r\n"
    private static let close: StaticString = "\r\nConnection: close\r\n\r\n"
    private static let before: StaticString = #"{"code":0,"msg":"success","data":{""#
    private static let between: StaticString = #"":{""#
}
