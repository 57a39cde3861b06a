internal import FerryCore

extension APNsAlert {
    /// Builds the request that `push_channel.ios` describes. nil when it says nothing that a device could show or an
    /// app could read: the gateway's default alert then goes out. `auto_badge` is checked and has no effect yet.
    static func read(_ ios: FieldReader?) throws(APIError) -> APNsAlert? {
        guard let ios else { return nil }
        try checkType(ios)
        try checkBadge(ios)
        let collapseID = try readCollapseID(ios)
        let custom = try ios.nonEmptyString("payload")
        let aps = try APS(ios.object("aps", at: "push_channel.ios.aps"))
        guard aps.isVisible || aps.isSilent else {
            guard custom == nil, collapseID == nil, !aps.saysSomething else { throw .null(aps.alertPath) }
            return nil
        }
        var writer = JSONWriter()
        writer.beginObject()
        writer.name("aps")
        aps.write(to: &writer)
        if let custom { writer.member("payload", custom) }
        writer.endObject()
        guard writer.bytes.count <= Limits.apnsPayloadBytes else {
            throw .overLimit(
                "push_channel.ios",
                "\(writer.bytes.count) bytes as an APNs payload, at most \(Limits.apnsPayloadBytes)")
        }
        return APNsAlert(
            payload: writer.bytes, collapseID: collapseID, pushType: aps.isVisible ? .alert : .background)
    }

    private static func checkType(_ ios: FieldReader) throws(APIError) {
        guard let type = try ios.nonEmptyString("type"), type != "notify" else { return }
        if type == "voip" || type == "liveactivity" {
            throw .invalid(ios.path("type"), "\"\(type)\" is not supported yet, only \"notify\" is")
        }
        throw .invalid(ios.path("type"), Excerpt.quoted(type))
    }

    private static func checkBadge(_ ios: FieldReader) throws(APIError) {
        guard let badge = try ios.nonEmptyString("auto_badge") else { return }
        let digits = badge.first == "+" || badge.first == "-" ? badge.dropFirst() : badge[...]
        guard (1...9).contains(digits.utf8.count), digits.utf8.allSatisfy(ASCII.isDigit) else {
            throw .invalid(ios.path("auto_badge"), "\(Excerpt.quoted(badge)), must be like \"+1\", \"-1\" or \"5\"")
        }
    }

    private static func readCollapseID(_ ios: FieldReader) throws(APIError) -> String? {
        guard let text = try ios.nonEmptyString("apns-collapse-id") else { return nil }
        return try checkCollapseID(text, ios.path("apns-collapse-id"))
    }

    private static func checkCollapseID(_ text: String, _ name: String) throws(APIError) -> String {
        guard text.utf8.count <= Limits.collapseIDBytes else {
            throw .overLimit(name, "\(text.utf8.count) bytes, at most \(Limits.collapseIDBytes)")
        }
        // It travels as a header value, whose ends are trimmed on the way.
        guard text.utf8.allSatisfy({ (0x20...0x7e).contains($0) }), text.utf8.first != 0x20, text.utf8.last != 0x20
        else { throw .invalid(name, "\(Excerpt.quoted(text)), must be printable ASCII without spaces at its ends") }
        return text
    }
}

extension APNsAlert {
    /// The alert of a push that came over a link: the body for APNs as the backend made it, which must be an object with an
    /// object `aps`; nil when the push has none.
    static func read(_ body: [UInt8], collapseID: String, isBackground: Bool, _ json: JSONParser) throws(APIError)
        -> APNsAlert?
    {
        guard !body.isEmpty else {
            guard collapseID.isEmpty else { throw .empty("alert") }
            return nil
        }
        let parsed = json.withParsed(body) { root in
            guard root.kind == .object, case .value(let aps) = root.member("aps") else { return false }
            return aps.kind == .object
        }
        switch parsed {
        case .success(true): break
        case .success(false): throw .type("alert", mustBe: "a JSON object with an object aps")
        case .failure(.noMemory): throw .busy(retryAfterSeconds: 1)
        case .failure(let fault): throw .invalid("alert", "it is not JSON: \(fault.explanation)")
        }
        let collapseID = collapseID.isEmpty ? nil : try checkCollapseID(collapseID, "collapseId")
        return APNsAlert(payload: body, collapseID: collapseID, pushType: isBackground ? .background : .alert)
    }
}

/// `push_channel.ios.aps`, read.
private struct APS {
    private static let texts: [StaticString] = [
        "title", "subtitle", "body", "launch-image", "action-loc-key", "title-loc-key", "subtitle-loc-key", "loc-key",
    ]
    private static let lists: [StaticString] = ["title-loc-args", "subtitle-loc-args", "loc-args"]
    private static let silentSound = "com.gexin.ios.silence"

    let alertPath = "push_channel.ios.aps.alert"
    private var texts: [(name: StaticString, text: String)] = []
    private var lists: [(name: StaticString, items: [String])] = []
    private var sound: String?
    private var category: String?
    private var threadID: String?
    /// `content-available` is 1.
    private(set) var isSilent = false

    /// Whether the owner of the device sees something.
    var isVisible: Bool { !texts.isEmpty }
    var saysSomething: Bool { isVisible || isSilent || sound != nil || category != nil || threadID != nil }

    init(_ aps: FieldReader?) throws(APIError) {
        guard let aps else { return }
        if let available = try aps.integer("content-available") {
            guard available == 0 || available == 1 else {
                throw .invalid(aps.path("content-available"), "\(available), must be 0 or 1")
            }
            isSilent = available == 1
        }
        if let alert = try aps.object("alert", at: "push_channel.ios.aps.alert") {
            for name in Self.texts {
                if let text = try alert.nonEmptyString(name) { texts.append((name, text)) }
            }
            for name in Self.lists {
                if let items = try alert.strings(name), !items.isEmpty { lists.append((name, items)) }
            }
            guard isVisible else { throw .empty(alertPath) }
        }
        if let name = try aps.nonEmptyString("sound"), name != Self.silentSound { sound = name }
        category = try aps.nonEmptyString("category")
        threadID = try aps.nonEmptyString("thread-id")
        // APNs refuses a background push that shows or plays something.
        if isSilent, !isVisible {
            if sound != nil { throw conflict(aps, "sound") }
            if category != nil { throw conflict(aps, "category") }
            if threadID != nil { throw conflict(aps, "thread-id") }
        }
    }

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        if isVisible {
            writer.name("alert")
            writer.beginObject()
            for (name, text) in texts { writer.member(name, text) }
            for (name, items) in lists {
                writer.name(name)
                writer.beginArray()
                for item in items { writer.string(item) }
                writer.endArray()
            }
            writer.endObject()
            // As GeTui's server does: lets the app's service extension see the alert first.
            writer.member("mutable-content", 1)
        }
        if isSilent { writer.member("content-available", 1) }
        if let sound { writer.member("sound", sound) }
        if let category { writer.member("category", category) }
        if let threadID { writer.member("thread-id", threadID) }
        writer.endObject()
    }

    private func conflict(_ aps: FieldReader, _ name: StaticString) -> APIError {
        .badParameter("\(aps.path("content-available")) and \(aps.path(name)) cannot setting at same time")
    }
}
