internal import FerryCore

/// What `push_channel.ios` says of a live activity, read: `laId` and the members of `aps` that only such a push has.
struct LiveActivity {
    let id: String?
    private let timestamp: Int64
    private let event: String
    private let dismissalDate: Int64?
    /// A JSON object.
    private let contentState: [UInt8]

    /// nil, and what is there is checked for its kind alone, where it is not needed.
    static func read(_ ios: FieldReader, isNeeded: Bool) throws(APIError) -> LiveActivity? {
        let id = try ios.text("laId", upTo: 128)
        guard let aps = try ios.object("aps", at: "push_channel.ios.aps") else {
            guard !isNeeded else { throw .null("push_channel.ios.aps") }
            return nil
        }
        let timestamp = try aps.integer("timestamp")
        let event = try aps.nonEmptyString("event")
        let dismissal = try aps.integer("dismissal-date")
        let state = try aps.value("content-state")
        guard isNeeded else { return nil }
        guard let event else { throw .empty(aps.path("event")) }
        guard event == "update" || event == "end" else {
            throw .invalid(aps.path("event"), "\(Excerpt.quoted(event)), must be update or end")
        }
        guard let state else { throw .null(aps.path("content-state")) }
        guard state.kind == .object, let bytes = state.minified else {
            throw .type(aps.path("content-state"), mustBe: "an object")
        }
        guard let timestamp else { throw .empty(aps.path("timestamp")) }
        return LiveActivity(
            id: id, timestamp: timestamp, event: event, dismissalDate: dismissal, contentState: bytes)
    }

    /// Members of an open `aps`.
    func write(to writer: inout JSONWriter) {
        writer.member("timestamp", timestamp)
        writer.member("event", event)
        writer.name("content-state")
        writer.raw(contentState)
        if let dismissalDate { writer.member("dismissal-date", dismissalDate) }
    }
}
