/// What a client tells its app, on the client's own thread, in order.
public enum DeviceEvent: Sendable {
    /// A message's payload and where it belongs.
    public struct Message: Sendable, Hashable {
        /// The message's place in the device's stream; rises.
        public let seq: UInt64
        /// Names the message: 32 hex digits.
        public let messageID: String
        /// Names the sender's call.
        public let taskID: String
        /// false: the device was there from acceptance to delivery and nothing announced the message.
        public let isOffLine: Bool
        /// Whether the payload was compressed on its way. `payload` is the original.
        public let wasCompressed: Bool
        /// At most 65,536 bytes, as the sender gave them.
        public let payload: [UInt8]
    }

    /// Something that the app is asked to show, and where it belongs. What the sender did not say is nil.
    public struct Notification: Sendable, Hashable {
        /// What a tap on it does.
        public enum Click: Sendable, Hashable {
            /// Starts this Android intent.
            case intent(String)
            /// Opens this address.
            case url(String)
            /// Opens the app, which gets this.
            case payload(String)
            /// The app gets this and decides.
            case custom(String)
            /// Opens the app, which may find this.
            case startApp(String?)
            /// Nothing.
            case none
        }

        /// Its place and names. `payload` holds its fields as they travelled.
        public let message: Message
        /// The headline, not empty.
        public let title: String
        /// The text, not empty.
        public let body: String
        /// A longer text for the unfolded notification.
        public let bigText: String?
        /// The address of an image for it.
        public let bigImage: String?
        /// The name of an image in the app.
        public let logo: String?
        /// The address of one.
        public let logoURL: String?
        /// Android's notification channel.
        public let channelID: String?
        /// Its name for people.
        public let channelName: String?
        /// How much it may interrupt, 0...4.
        public let channelLevel: Int?
        /// What a tap on it does.
        public let click: Click
        /// It replaces the one of the same number.
        public let notifyID: Int?
        /// The name of a sound in the app.
        public let ringName: String?
        /// To be added to the number on the app's icon.
        public let badgeAddition: Int?
        /// Notifications with the same are shown together.
        public let threadID: String?
        /// How often it is shown again while nobody looks, 0...3.
        public let redisplayFrequency: Int?
        /// For how many milliseconds.
        public let redisplayDuration: Int?
        /// The sender's class of messages.
        public let category: String?
        /// Not to be shown before, in milliseconds since 1970.
        public let shownFrom: Int64?
        /// Nor after.
        public let shownUntil: Int64?
        /// To be shown on a wireless network only.
        public let isWiFiOnly: Bool
    }

    /// The sender takes back what an earlier call of its sent: the app removes what it shows of it.
    public struct Revoke: Sendable, Hashable {
        /// Its place and names.
        public let message: Message
        /// Names the earlier call, as `Message.taskID` of its messages did.
        public let oldTaskID: String
        /// The sender wants it told though it does not know whether the device has the message.
        public let isForced: Bool
    }

    /// Messages that were dropped before they could be delivered.
    public struct Gap: Sendable, Hashable {
        /// The gap's place in the device's stream.
        public let seq: UInt64
        /// How many are missing.
        public let count: UInt64
        /// Whose time ran out.
        public let expired: UInt64
        /// Which did not fit any more.
        public let overflowed: UInt64
        /// For reasons that this version does not know.
        public let other: UInt64
    }

    /// What the client does after it went offline.
    public enum NextAttempt: Sendable, Hashable {
        /// Tries again after this time.
        case after(Duration)
        /// Tries again when the app comes to the foreground.
        case inForeground
        /// Nothing.
        case never
    }

    /// Why a client ended.
    public enum StopReason: Sendable, Hashable {
        /// The app asked for it.
        case requested
        /// The gateway's close code says not to come back before software or configuration changes.
        case refused(code: UInt16, text: String)
    }

    /// The device has an identity now.
    case registered(cid: String)
    /// A session has begun; so many messages were kept for it.
    case online(cid: String, keptMessages: UInt64)
    /// A message. It counts as handed over when the handler returns; then it is acknowledged.
    case message(Message)
    /// A notification to show. As `message`: it counts as handed over when the handler returns.
    case notification(Notification)
    /// An earlier message is taken back. Likewise.
    case revoke(Revoke)
    /// Messages that will not come.
    case gap(Gap)
    /// The gateway has the device's token, or its absence, on disk.
    case tokenSaved
    /// The attempt or session ended. `code` is the gateway's close code, if it sent one.
    case offline(reason: String, code: UInt16?, next: NextAttempt)
    /// The client has ended; nothing follows.
    case stopped(StopReason)
}
