package import FerryCore

extension DeviceStory {
    /// Whether anything is known of what was asked.
    package var isFound: Bool { target == nil || !messages.isEmpty }

    /// Of an answer, unless it is asked otherwise.
    package static let answerBytes = 1 << 20

    /// The story as one JSON object. Times are strings of milliseconds since 1970, as everywhere in the API.
    /// - Parameter limit: of its bytes, about; what is older is left out, then, and the answer says that there is more.
    package func json(cid: CID, limit: Int = answerBytes) -> [UInt8] {
        var isCut = isThinned || coverage.hasMore
        var room = limit
        let events = Self.newest(events, room: room / 4) { $0.json }
        isCut = isCut || events.isCut
        room -= events.bytes
        let messages = Self.newest(messages, room: room) { $0.json(room: room, isCut: &isCut) }
        isCut = isCut || messages.isCut
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("cid", cid.description)
        writer.name("found")
        writer.truth(isFound)
        writer.member("verdict", verdict)
        writer.name("device")
        write(device: &writer)
        writer.name("messages")
        writer.array(messages.values)
        writer.name("events")
        writer.array(events.values)
        writer.name("timeline")
        writer.truth(!coverage.isOff)
        if let from = coverage.from { writer.member("coversFrom", String(from.milliseconds)) }
        writer.member("factsLost", Int64(clamping: coverage.factsLost))
        writer.name("agedOut")
        writer.truth(!isFound && (coverage.hasAgedOut || coverage.isPartial))
        writer.name("more")
        writer.truth(isCut)
        writer.endObject()
        return writer.bytes
    }

    /// The last values that fit, in their order.
    fileprivate static func newest<Value>(
        _ all: [Value], room: Int, _ json: (Value) -> [UInt8]
    ) -> (values: [[UInt8]], bytes: Int, isCut: Bool) {
        var values: [[UInt8]] = []
        var bytes = 0
        for value in all.reversed() {
            let text = json(value)
            guard bytes + text.count < room else { break }
            bytes += text.count + 1
            values.append(text)
        }
        return (values.reversed(), bytes, values.count < all.count)
    }

    private func write(device writer: inout JSONWriter) {
        writer.beginObject()
        view.writePresence(to: &writer)
        if case .attached = view.presence {
            if let session = presence.session { writer.member("since", String(session.since.milliseconds)) }
        } else if let since = presence.awaySince {
            writer.member("since", String(since.milliseconds))
        }
        view.writeRecord(to: &writer)
        writer.endObject()
    }
}

extension DeviceView {
    /// The device as one JSON object, without what a log would have to tell.
    package func json(cid: CID) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("cid", cid.description)
        writePresence(to: &writer)
        writeRecord(to: &writer)
        writer.endObject()
        return writer.bytes
    }

    fileprivate func writePresence(to writer: inout JSONWriter) {
        writer.member("status", isOnline ? "online" : "offline")
        switch presence {
        case .attached(let session):
            writer.member("presence", "attached")
            writer.member("session", session.text)
        case .grace: writer.member("presence", "grace")
        case .offline: writer.member("presence", "offline")
        case .restored: writer.member("presence", "restored")
        }
    }

    fileprivate func writeRecord(to writer: inout JSONWriter) {
        writer.member("registered_time", String(registeredAt.milliseconds))
        writer.member("last_login_time", String(seenAt.milliseconds))
        writer.member("kept", Int64(keptCount))
        writer.member("kept_bytes", Int64(keptBytes))
        writer.member("acknowledged", acknowledged.description)
        writer.name("push_token")
        writer.truth(hasToken)
    }
}

extension MessageStory {
    /// Events that are told of one message however large the answer is; beyond the first of them the newest count.
    private static let firstEvents = 8

    /// Without the middle of its events where that would be too much.
    fileprivate func json(room: Int, isCut: inout Bool) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("msgid", acceptance.messageID.description)
        writer.member("taskid", acceptance.taskID.description)
        writer.member("seq", acceptance.seq.description)
        writer.member("state", state.map { "\($0)" } ?? "unknown")
        if let reason { writer.member("reason", reason.name) }
        writer.member("verdict", verdict)
        writer.member("accepted_time", String(acceptance.acceptedAt.milliseconds))
        if !acceptance.isLiveOnly { writer.member("expire_time", String(acceptance.expiresAt.milliseconds)) }
        writer.member("bytes", Int64(acceptance.payloadBytes))
        writer.name("events")
        let first = events.prefix(Self.firstEvents).map(\.json)
        // Behind the members before, and before the bracket and the comma that follow.
        let left = room - writer.bytes.count - first.reduce(8) { $0 + $1.count + 1 }
        let newest = DeviceStory.newest(Array(events.dropFirst(Self.firstEvents)), room: left) { $0.json }
        isCut = isCut || newest.isCut
        writer.array(first + newest.values)
        writer.endObject()
        return writer.bytes
    }
}

extension TimedFact {
    fileprivate var json: [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("time", String(at.milliseconds))
        writer.member("order", Int64(order))
        writer.member("event", fact.name)
        writer.member("text", fact.text(at: at))
        writer.endObject()
        return writer.bytes
    }
}

extension JSONWriter {
    fileprivate mutating func array(_ values: [[UInt8]]) {
        beginArray()
        for value in values { raw(value) }
        endArray()
    }
}
