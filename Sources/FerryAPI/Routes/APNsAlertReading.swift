internal import FerryCore

extension APNsAlert {
    /// Builds the request that `push_channel.ios` describes, and notes in `traits` what kind of push it is and what it does to
    /// the badge. nil when it says nothing that a device could show or an app could read: the gateway's default alert then
    /// goes out.
    static func read(_ ios: FieldReader?, traits: inout MessageTraits) throws(APIError) -> APNsAlert? {
        guard let ios else { return nil }
        let kind = try readKind(ios)
        let badge = try readBadge(ios)
        let collapseID = try readCollapseID(ios)
        let custom = try ios.nonEmptyString("payload")
        let media = try readMedia(ios)
        let aps = try APS(ios.object("aps", at: "push_channel.ios.aps"))
        let activity = try LiveActivity.read(ios, isNeeded: kind == .liveActivity)
        switch kind {
        case .notify:
            guard aps.isVisible || aps.isSilent else {
                guard custom == nil, collapseID == nil, media.isEmpty, !aps.saysSomething else {
                    throw .null(aps.alertPath)
                }
                return nil
            }
        case .voip:
            guard aps.isVisible || custom != nil else { throw .null(ios.path("payload")) }
            guard !aps.isSilent else { throw .invalid(ios.path("type"), "a voip push cannot be content-available") }
        case .liveActivity:
            guard !aps.isSilent else {
                throw .invalid(ios.path("type"), "a liveactivity push cannot be content-available")
            }
        }
        var writer = JSONWriter()
        writer.beginObject()
        writer.name("aps")
        aps.write(to: &writer, activity)
        if let custom { writer.member("payload", custom) }
        if let id = activity?.id { writer.member("laId", id) }
        write(media, to: &writer)
        writer.endObject()
        // The badge's number is put in when the push is sent.
        let count = writer.bytes.count + (badge == nil ? 0 : mostBadgeBytes)
        guard count <= Limits.apnsPayloadBytes else {
            throw .overLimit(
                "push_channel.ios", "\(count) bytes as an APNs payload, at most \(Limits.apnsPayloadBytes)")
        }
        traits.alertKind = kind
        traits.badge = badge
        return APNsAlert(
            payload: writer.bytes, collapseID: collapseID,
            pushType: kind == .notify && !aps.isVisible ? .background : .alert)
    }

    private static let mostBadgeBytes = #""badge":2147483647,"#.utf8.count

    private static func readKind(_ ios: FieldReader) throws(APIError) -> AlertKind {
        switch try ios.nonEmptyString("type") {
        case nil, "notify": .notify
        case "voip": .voip
        case "liveactivity": .liveActivity
        case let type?:
            throw .invalid(ios.path("type"), "\(Excerpt.quoted(type)), must be notify, voip or liveactivity")
        }
    }

    private static func readBadge(_ ios: FieldReader) throws(APIError) -> AutoBadge? {
        guard let badge = try ios.nonEmptyString("auto_badge") else { return nil }
        let sign = badge.first == "+" || badge.first == "-" ? badge.first : nil
        let digits = sign == nil ? badge[...] : badge.dropFirst()
        guard (1...9).contains(digits.utf8.count), digits.utf8.allSatisfy(ASCII.isDigit), let value = Int32(digits)
        else {
            throw .invalid(ios.path("auto_badge"), "\(Excerpt.quoted(badge)), must be like \"+1\", \"-1\" or \"5\"")
        }
        switch sign {
        case "+": return .add(value)
        case "-": return .add(-value)
        default: return .set(value)
        }
    }

    private struct Medium {
        let url: String
        let type: Int64
        let isWiFiOnly: Bool
    }

    private static func readMedia(_ ios: FieldReader) throws(APIError) -> [Medium] {
        let path = "push_channel.ios.multimedia"
        guard let list = try ios.value("multimedia") else { return [] }
        guard let elements = list.elements else { throw .type(path, mustBe: "an array of objects") }
        var media: [Medium] = []
        for element in elements {
            guard media.count < 3 else { throw .overLimit(path, "at most 3") }
            guard element.kind == .object else { throw .type(path, mustBe: "an array of objects") }
            let fields = FieldReader(element, at: "push_channel.ios.multimedia")
            let url = try fields.requiredText("url", upTo: 1_024)
            guard let type = try fields.integer("type", in: 1...3) else { throw .empty(fields.path("type")) }
            media.append(Medium(url: url, type: type, isWiFiOnly: try fields.truth("only_wifi") ?? false))
        }
        return media
    }

    /// Under the key at which GeTui's service extension looks for them.
    private static func write(_ media: [Medium], to writer: inout JSONWriter) {
        guard !media.isEmpty else { return }
        writer.name("_grinfo_")
        writer.beginArray()
        for medium in media {
            writer.beginObject()
            writer.member("url", medium.url)
            writer.member("type", medium.type)
            writer.name("only_wifi")
            writer.truth(medium.isWiFiOnly)
            writer.endObject()
        }
        writer.endArray()
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

    func write(to writer: inout JSONWriter, _ activity: LiveActivity?) {
        writer.beginObject()
        activity?.write(to: &writer)
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
