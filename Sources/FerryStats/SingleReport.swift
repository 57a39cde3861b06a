package import FerryCore

extension DeviceStory {
    /// What reports tell of the one message that the story is of; nil when it is not known.
    package var report: ReportCounters? {
        guard target != nil, let message = messages.last else { return nil }
        var counters = ReportCounters()
        counters.accepted = 1
        if let reason = message.reason {
            counters.end(reason)
        } else if message.state == nil {
            // It has ended, and nobody knows how.
            counters.carried = -1
        }
        for event in message.events {
            switch event.fact {
            case .stubRequested: counters.stubsRequested = 1
            case .stubAnswered(_, _, .accepted): counters.stubsAccepted = 1
            case .stubAnswered(_, _, .refused): counters.stubsRefused = 1
            default: break
            }
        }
        return counters
    }

    /// The message's way in GeTui's form: a list under both spellings that its clients read, times as clocks show them.
    package func pathJSON(_ offset: UTCOffset) -> [UInt8] {
        var told = messages.flatMap(\.events) + events
        told.sort { ($0.at, $0.order) < ($1.at, $1.order) }
        var list = JSONWriter()
        list.beginArray()
        for event in told {
            list.beginObject()
            list.member("time", event.at.clockText(offset))
            list.member("event", "\(event.fact.name): \(event.fact.text(at: event.at))")
            list.endObject()
        }
        list.endArray()
        var writer = JSONWriter()
        writer.beginObject()
        for name in ["detail", "deatil"] {
            writer.name(name)
            writer.raw(list.bytes)
        }
        writer.endObject()
        return writer.bytes
    }
}
