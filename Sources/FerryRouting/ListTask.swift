package import FerryCore

/// A task whose content is stored once and that devices are added to, call by call: what its app's owner holds of it in
/// memory. The content is elsewhere.
package struct ListTask: Hashable, Sendable {
    package let app: AppID
    package let taskID: TaskID
    package let createdAt: Instant
    /// Of each of its messages, in milliseconds from that message's acceptance; 0 for live only.
    package let timeToLive: Int64
    package let payloadBytes: UInt32
    /// Its sender gave it an alert of its own.
    package let hasAlert: Bool
    /// Digest of (app, request id).
    package let request: Identifier128
    /// Digest of the content, to tell a repeat from a mistake.
    package let content: Identifier128
    /// What its sender wants to read in receipts. It is in the content too, but a start does not read contents.
    package let callback: String?

    package init(
        app: AppID, taskID: TaskID, createdAt: Instant, timeToLive: Int64, payloadBytes: UInt32, hasAlert: Bool,
        request: Identifier128, content: Identifier128, callback: String? = nil
    ) {
        self.app = app
        self.taskID = taskID
        self.createdAt = createdAt
        self.timeToLive = timeToLive
        self.payloadBytes = payloadBytes
        self.hasAlert = hasAlert
        self.request = request
        self.content = content
        self.callback = callback
    }

    package var isLiveOnly: Bool { timeToLive == 0 }

    /// Devices may be named for it by calls; of others who gets it is fixed when they are made.
    package var isOpen: Bool { taskID.kind == .list }

    /// All devices of a task that is not open are to have it by then.
    package static let longestExpansion = Duration.seconds(7 * 86_400)

    /// Devices may be added until then: for as long as its ttl, and a live-only one for as long as the usual ttl.
    package var usableUntil: Instant {
        guard isOpen else { return createdAt + Self.longestExpansion }
        return createdAt + .milliseconds(isLiveOnly ? Limits.timeToLiveDefaultMilliseconds : timeToLive)
    }

    /// From then on no message of it is kept: the last that was added has lived as long as it may. The hour covers what was on
    /// its way to the disk, and sessions that hold a live-only one.
    package var contentOverAt: Instant { usableUntil + .milliseconds(timeToLive) + .seconds(3_600) }

    // MARK: - Bytes

    private static let version: UInt8 = 1
    /// With a callback at its end.
    private static let versionWithCallback: UInt8 = 2

    /// As it stands in its row.
    package var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.byte(callback == nil ? Self.version : Self.versionWithCallback)
        writer.string(app.text.utf8)
        writer.identifier(taskID.value)
        writer.varint(UInt64(taskID.monthDay))
        writer.byte(taskID.kind.rawValue)
        writer.uint64(UInt64(bitPattern: createdAt.milliseconds))
        writer.varint(UInt64(timeToLive))
        writer.varint(UInt64(payloadBytes))
        writer.byte(hasAlert ? 1 : 0)
        writer.identifier(request)
        writer.identifier(content)
        if let callback { writer.string(callback.utf8) }
        return writer.bytes
    }

    /// nil when the bytes are no such task.
    package init?(_ bytes: [UInt8]) {
        let read: ListTask? = bytes.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard let version = reader.byte(), version == Self.version || version == Self.versionWithCallback,
                let name = reader.string(limit: reader.remaining),
                let app = String(validating: name, as: UTF8.self).flatMap({ AppID($0) }),
                let value = reader.identifier(), let day = reader.varint(), let monthDay = UInt16(exactly: day),
                let kind = reader.byte().flatMap({ TaskID.Kind(rawValue: $0) }), let at = reader.uint64(),
                let ttl = reader.varint(), ttl <= UInt64(Limits.timeToLiveMilliseconds),
                let payloadBytes = reader.varint().flatMap({ UInt32(exactly: $0) }), let alert = reader.byte(),
                alert <= 1, let request = reader.identifier(), let content = reader.identifier()
            else { return nil }
            var callback: String?
            if version == Self.versionWithCallback {
                guard let text = reader.string(limit: MessageTraits.callbackBytes),
                    let found = String(validating: text, as: UTF8.self)
                else { return nil }
                callback = found
            }
            guard reader.isAtEnd else { return nil }
            return ListTask(
                app: app, taskID: TaskID(value, monthDay: monthDay, kind: kind),
                createdAt: Instant(milliseconds: Int64(bitPattern: at)), timeToLive: Int64(ttl),
                payloadBytes: payloadBytes, hasAlert: alert == 1, request: request, content: content,
                callback: callback)
        }
        guard let read else { return nil }
        self = read
    }
}
