package import FerryCore

/// A call that a backend made for a later time: it is kept as it came, and made again when its time has come.
package struct ScheduledCall: Equatable, Sendable {
    /// What became of it. Only what waits may still change.
    package enum State: UInt8, Sendable, CaseIterable {
        case waiting = 0
        /// Its messages were accepted at `releaseAt` or, where the gateway was down then, at its next start.
        case released = 1
        case cancelled = 2
        /// It could not be made when its time had come: the configuration had changed meanwhile.
        case failed = 3
    }

    /// Which call it is.
    package enum Kind: UInt8, Sendable, CaseIterable {
        case all = 1
        case tag = 2
        case fastCustomTag = 3
    }

    package let app: AppID
    /// Of the task that it becomes.
    package let taskID: TaskID
    package let kind: Kind
    package let createdAt: Instant
    package let releaseAt: Instant
    /// Digests of (app, request id) and of the content.
    package let request: Identifier128
    package let content: Identifier128
    package var state: State
    /// The call's body as it came; empty for what does not wait.
    package var body: [UInt8]

    package init(
        app: AppID, taskID: TaskID, kind: Kind, createdAt: Instant, releaseAt: Instant, request: Identifier128,
        content: Identifier128, state: State = .waiting, body: [UInt8]
    ) {
        self.app = app
        self.taskID = taskID
        self.kind = kind
        self.createdAt = createdAt
        self.releaseAt = releaseAt
        self.request = request
        self.content = content
        self.state = state
        self.body = body
    }

    /// The same in its last state: what was to be sent is not needed any more.
    package func ended(_ state: State) -> ScheduledCall {
        var ended = self
        ended.state = state
        ended.body = []
        return ended
    }

    // MARK: - As a row

    private static let version: UInt8 = 1

    package var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.byte(Self.version)
        writer.string(app.text.utf8)
        writer.byte(taskID.kind.rawValue)
        writer.varint(UInt64(taskID.monthDay))
        writer.identifier(taskID.value)
        writer.byte(kind.rawValue)
        writer.uint64(UInt64(bitPattern: createdAt.milliseconds))
        writer.uint64(UInt64(bitPattern: releaseAt.milliseconds))
        writer.identifier(request)
        writer.identifier(content)
        writer.byte(state.rawValue)
        writer.string(body)
        return writer.bytes
    }

    /// nil for what `encoded` does not make.
    package init?(_ bytes: [UInt8]) {
        let read = bytes.withUnsafeBytes { bytes -> ScheduledCall? in
            var reader = ByteReader(bytes)
            guard reader.byte() == Self.version, let app = reader.string(limit: 512),
                let appID = AppID(String(decoding: app, as: UTF8.self)),
                let taskKind = reader.byte().flatMap({ TaskID.Kind(rawValue: $0) }),
                let monthDay = reader.varint().flatMap({ UInt16(exactly: $0) }), let task = reader.identifier(),
                let kind = reader.byte().flatMap({ Kind(rawValue: $0) }), let createdAt = reader.uint64(),
                let releaseAt = reader.uint64(), let request = reader.identifier(), let content = reader.identifier(),
                let state = reader.byte().flatMap({ State(rawValue: $0) }),
                let body = reader.string(limit: reader.remaining), reader.isAtEnd
            else { return nil }
            return ScheduledCall(
                app: appID, taskID: TaskID(task, monthDay: monthDay, kind: taskKind), kind: kind,
                createdAt: Instant(milliseconds: Int64(bitPattern: createdAt)),
                releaseAt: Instant(milliseconds: Int64(bitPattern: releaseAt)), request: request, content: content,
                state: state, body: [UInt8](body))
        }
        guard let read else { return nil }
        self = read
    }
}
