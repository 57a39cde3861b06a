package import FerryCore

extension DeviceStory {
    /// Whether anything is known of what was asked.
    package var isFound: Bool { target == nil || !messages.isEmpty }

    /// The story as one JSON object. Times are strings of milliseconds since 1970, as everywhere in the API.
    package func json(cid: CID) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("cid", cid.description)
        writer.name("found")
        writer.truth(isFound)
        writer.member("verdict", verdict)
        writer.name("device")
        write(device: &writer)
        writer.name("messages")
        writer.beginArray()
        for message in messages { message.write(to: &writer) }
        writer.endArray()
        writer.name("events")
        writer.beginArray()
        for event in events { event.write(to: &writer) }
        writer.endArray()
        writer.name("timeline")
        writer.truth(!coverage.isOff)
        if let from = coverage.from { writer.member("coversFrom", String(from.milliseconds)) }
        writer.member("factsLost", Int64(clamping: coverage.factsLost))
        writer.name("agedOut")
        writer.truth(!isFound && coverage.hasAgedOut)
        writer.name("more")
        writer.truth(coverage.hasMore)
        writer.endObject()
        return writer.bytes
    }

    private func write(device writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("status", view.isOnline ? "online" : "offline")
        switch view.presence {
        case .attached(let session):
            writer.member("presence", "attached")
            writer.member("session", session.text)
        case .grace: writer.member("presence", "grace")
        case .offline: writer.member("presence", "offline")
        case .restored: writer.member("presence", "restored")
        }
        if case .attached = view.presence {
            if let session = presence.session { writer.member("since", String(session.since.milliseconds)) }
        } else if let since = presence.awaySince {
            writer.member("since", String(since.milliseconds))
        }
        writer.member("registered_time", String(view.registeredAt.milliseconds))
        writer.member("last_login_time", String(view.seenAt.milliseconds))
        writer.member("kept", Int64(view.keptCount))
        writer.member("kept_bytes", Int64(view.keptBytes))
        writer.member("acknowledged", view.acknowledged.description)
        writer.name("push_token")
        writer.truth(view.hasToken)
        writer.endObject()
    }
}

extension MessageStory {
    fileprivate func write(to writer: inout JSONWriter) {
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
        writer.beginArray()
        for event in events { event.write(to: &writer) }
        writer.endArray()
        writer.endObject()
    }
}

extension TimedFact {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("time", String(at.milliseconds))
        writer.member("order", Int64(order))
        writer.member("event", fact.name)
        writer.member("text", fact.text(at: at))
        writer.endObject()
    }
}
