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
    /// Messages that will not come.
    case gap(Gap)
    /// The gateway has the device's token, or its absence, on disk.
    case tokenSaved
    /// The attempt or session ended. `code` is the gateway's close code, if it sent one.
    case offline(reason: String, code: UInt16?, next: NextAttempt)
    /// The client has ended; nothing follows.
    case stopped(StopReason)
}
