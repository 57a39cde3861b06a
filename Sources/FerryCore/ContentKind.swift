/// What a message's payload is to the client that gets it. Numbers are those of the wire and of the journal.
package enum ContentKind: UInt8, Sendable, BitwiseCopyable, CaseIterable {
    /// Bytes that only the app understands.
    case transmission = 0
    /// Something to show: a `NotificationContent`.
    case notification = 1
    /// An earlier message is taken back: a `RevokeContent`.
    case revoke = 2
}

/// A notification that the app, or its SDK, shows: protocol-spec/chapters/12-typed-contents.md. Only what was said is there.
package struct NotificationContent: Hashable, Sendable {
    /// What a tap on it does. GeTui's words.
    package enum Click: String, Hashable, Sendable, CaseIterable {
        /// `clickTarget` is an Android intent.
        case intent
        /// `clickTarget` is an address to open.
        case url
        /// `clickTarget` is given to the app, which is opened.
        case payload
        /// The same, without being opened.
        case payloadCustom = "payload_custom"
        case startApp = "startapp"
        case none
    }

    package var title = ""
    package var body = ""
    package var bigText: String?
    /// An address.
    package var bigImage: String?
    /// A file in the app.
    package var logo: String?
    package var logoURL: String?
    package var channelID: String?
    package var channelName: String?
    /// 0...4, as Android's importance.
    package var channelLevel: UInt64?
    package var click = Click.none
    package var clickTarget: String?
    /// It replaces the one of the same number. 0...2,147,483,647.
    package var notifyID: UInt64?
    package var ringName: String?
    package var badgeAddition: UInt64?
    package var threadID: String?
    /// How often it is shown again if nobody looks, 0...3, and for how many milliseconds.
    package var redisplayFrequency: UInt64?
    package var redisplayDuration: UInt64?
    package var category: String?
    /// It may be shown from and until, in milliseconds since 1970.
    package var shownFrom: UInt64?
    package var shownUntil: UInt64?
    /// To be shown while the device is on a wireless network only.
    package var isWiFiOnly = false

    package init() {}

    private enum Tag {
        static let title: UInt64 = 1
        static let body: UInt64 = 2
        static let bigText: UInt64 = 3
        static let bigImage: UInt64 = 4
        static let logo: UInt64 = 5
        static let logoURL: UInt64 = 6
        static let channelID: UInt64 = 7
        static let channelName: UInt64 = 8
        static let channelLevel: UInt64 = 9
        static let click: UInt64 = 10
        static let clickTarget: UInt64 = 11
        static let notifyID: UInt64 = 12
        static let ringName: UInt64 = 13
        static let badgeAddition: UInt64 = 14
        static let threadID: UInt64 = 15
        static let redisplayFrequency: UInt64 = 16
        static let redisplayDuration: UInt64 = 17
        static let category: UInt64 = 18
        static let shownFrom: UInt64 = 19
        static let shownUntil: UInt64 = 20
        static let wiFiOnly: UInt64 = 21
    }

    /// The payload of the message.
    package var encoded: [UInt8] {
        var writer = TaggedFieldsWriter()
        writer.text(Tag.title, title)
        writer.text(Tag.body, body)
        writer.text(Tag.bigText, bigText)
        writer.text(Tag.bigImage, bigImage)
        writer.text(Tag.logo, logo)
        writer.text(Tag.logoURL, logoURL)
        writer.text(Tag.channelID, channelID)
        writer.text(Tag.channelName, channelName)
        writer.number(Tag.channelLevel, channelLevel)
        writer.text(Tag.click, click.rawValue)
        writer.text(Tag.clickTarget, clickTarget)
        writer.number(Tag.notifyID, notifyID)
        writer.text(Tag.ringName, ringName)
        writer.number(Tag.badgeAddition, badgeAddition)
        writer.text(Tag.threadID, threadID)
        writer.number(Tag.redisplayFrequency, redisplayFrequency)
        writer.number(Tag.redisplayDuration, redisplayDuration)
        writer.text(Tag.category, category)
        writer.number(Tag.shownFrom, shownFrom)
        writer.number(Tag.shownUntil, shownUntil)
        writer.mark(Tag.wiFiOnly, isWiFiOnly)
        return writer.bytes
    }

    /// Takes what it can read; what it does not know, and all from a fault on, is left out.
    package init(encoded: UnsafeRawBufferPointer) {
        var reader = TaggedFieldsReader(encoded)
        var seen: Set<UInt64> = []
        while let (tag, value) = reader.next() {
            // Of a repeated tag the first counts.
            guard seen.insert(tag).inserted else { continue }
            take(tag, value)
        }
    }

    private mutating func take(_ tag: UInt64, _ value: UnsafeRawBufferPointer) {
        func text() -> String { TaggedFieldsReader.text(value) }
        func number() -> UInt64? { TaggedFieldsReader.number(value) }
        switch tag {
        case Tag.title: title = text()
        case Tag.body: body = text()
        case Tag.bigText: bigText = text()
        case Tag.bigImage: bigImage = text()
        case Tag.logo: logo = text()
        case Tag.logoURL: logoURL = text()
        case Tag.channelID: channelID = text()
        case Tag.channelName: channelName = text()
        case Tag.channelLevel: channelLevel = number()
        case Tag.click: click = Click(rawValue: text()) ?? .none
        case Tag.clickTarget: clickTarget = text()
        case Tag.notifyID: notifyID = number()
        case Tag.ringName: ringName = text()
        case Tag.badgeAddition: badgeAddition = number()
        case Tag.threadID: threadID = text()
        case Tag.redisplayFrequency: redisplayFrequency = number()
        case Tag.redisplayDuration: redisplayDuration = number()
        case Tag.category: category = text()
        case Tag.shownFrom: shownFrom = number()
        case Tag.shownUntil: shownUntil = number()
        case Tag.wiFiOnly: isWiFiOnly = true
        default: break
        }
    }
}

/// The sender takes back what an earlier call sent.
package struct RevokeContent: Hashable, Sendable {
    /// That call's name, opaque to devices.
    package var taskID: String
    /// Told although it is not known that the device has the message.
    package var isForced: Bool

    package init(taskID: String, isForced: Bool) {
        self.taskID = taskID
        self.isForced = isForced
    }

    private static let task: UInt64 = 1
    private static let forced: UInt64 = 2

    /// The payload of the message.
    package var encoded: [UInt8] {
        var writer = TaggedFieldsWriter()
        writer.text(Self.task, taskID)
        writer.mark(Self.forced, isForced)
        return writer.bytes
    }

    /// As that of a notification.
    package init(encoded: UnsafeRawBufferPointer) {
        var reader = TaggedFieldsReader(encoded)
        var task: String?
        isForced = false
        while let (tag, value) = reader.next() {
            switch tag {
            case Self.task: if task == nil { task = TaggedFieldsReader.text(value) }
            case Self.forced: isForced = true
            default: break
            }
        }
        taskID = task ?? ""
    }
}
