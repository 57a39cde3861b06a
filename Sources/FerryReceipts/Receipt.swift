package import FerryCore

/// Something that an app's backend is told of: how a message ended, or that a device came or went. It is kept as a few bytes
/// until the backend has answered; the text is made when it is sent.
package enum Receipt: Hashable, Sendable {
    case ended(EndedMessage)
    case presence(PresenceChange)

    package var at: Instant {
        switch self {
        case .ended(let message): message.at
        case .presence(let change): change.at
        }
    }
}

/// A message's end at one device.
package struct EndedMessage: Hashable, Sendable {
    package var cid: CID
    package var name: MessageName
    package var reason: EndReason
    package var at: Instant

    package init(cid: CID, name: MessageName, reason: EndReason, at: Instant) {
        self.cid = cid
        self.name = name
        self.reason = reason
        self.at = at
    }
}

/// What a backend calls a message.
package struct MessageName: Hashable, Sendable {
    package var taskID: TaskID
    package var messageID: MessageID
    /// What the sender wanted to read in the receipt; empty where it named nothing. UTF-8, at most `callbackBytes`.
    package var callback: [UInt8]

    package static let callbackBytes = 4_096

    package init(taskID: TaskID, messageID: MessageID, callback: [UInt8] = []) {
        self.taskID = taskID
        self.messageID = messageID
        self.callback = callback
    }
}

/// A device came, or went.
package struct PresenceChange: Hashable, Sendable, BitwiseCopyable {
    package var cid: CID
    package var isOnline: Bool
    package var at: Instant
    /// The session with which it came; 0 where it went.
    package var session: UInt64

    package init(cid: CID, isOnline: Bool, at: Instant, session: UInt64) {
        self.cid = cid
        self.isOnline = isOnline
        self.at = at
        self.session = session
    }
}

// MARK: - As bytes

extension Receipt {
    private enum Kind: UInt8 {
        case ended = 1
        case online = 2
        case offline = 3
    }

    private static let version: UInt8 = 1

    /// The value of a control row.
    package var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.bytes.reserveCapacity(72)
        writer.byte(Self.version)
        switch self {
        case .ended(let message):
            writer.byte(Kind.ended.rawValue)
            writer.uint64(UInt64(bitPattern: message.at.milliseconds))
            writer.identifier(message.cid.value)
            writer.byte(message.reason.rawValue)
            writer.byte(message.name.taskID.kind.rawValue)
            writer.varint(UInt64(message.name.taskID.monthDay))
            writer.identifier(message.name.taskID.value)
            writer.identifier(message.name.messageID.value)
            writer.string(message.name.callback)
        case .presence(let change):
            writer.byte((change.isOnline ? Kind.online : .offline).rawValue)
            writer.uint64(UInt64(bitPattern: change.at.milliseconds))
            writer.identifier(change.cid.value)
            writer.uint64(change.session)
        }
        return writer.bytes
    }

    /// nil for bytes that this version did not write.
    package init?(_ bytes: [UInt8]) {
        guard let receipt = bytes.withUnsafeBytes({ Self.read(ByteReader($0)) }) else { return nil }
        self = receipt
    }

    private static func read(_ given: ByteReader) -> Receipt? {
        var reader = given
        guard reader.byte() == version, let kind = reader.byte().flatMap({ Kind(rawValue: $0) }),
            let milliseconds = reader.uint64(), let cid = reader.identifier().map({ CID($0) })
        else { return nil }
        let at = Instant(milliseconds: Int64(bitPattern: milliseconds))
        let receipt: Receipt
        switch kind {
        case .ended:
            guard let reason = reader.byte().flatMap({ EndReason(rawValue: $0) }),
                let taskKind = reader.byte().flatMap({ TaskID.Kind(rawValue: $0) }),
                let monthDay = reader.varint().flatMap({ UInt16(exactly: $0) }), let task = reader.identifier(),
                let message = reader.identifier(), let callback = reader.string(limit: MessageName.callbackBytes)
            else { return nil }
            let name = MessageName(
                taskID: TaskID(task, monthDay: monthDay, kind: taskKind), messageID: MessageID(message),
                callback: [UInt8](callback))
            receipt = .ended(EndedMessage(cid: cid, name: name, reason: reason, at: at))
        case .online, .offline:
            guard let session = reader.uint64() else { return nil }
            receipt = .presence(PresenceChange(cid: cid, isOnline: kind == .online, at: at, session: session))
        }
        return reader.isAtEnd ? receipt : nil
    }
}
