internal import FerryAPI
internal import FerryCore
internal import FerryIO
internal import FerryReceipts
internal import FerryRouting
internal import FerrySession

/// A value of the configuration file.
package enum ConfigurationValue: Sendable, Equatable {
    case text(String)
    case integer(Int64)
    case flag(Bool)
    /// An object, an array, a fraction: no key takes one.
    case other
}

/// One key of the configuration file. This table alone drives reading, checking, and `docs/configuration.md`.
package struct ConfigurationKey: Sendable {
    package let name: String
    /// Such as `milliseconds, 0…60000`.
    package let range: String
    package let meaning: String
    /// Applies a value; answers what is wrong with it, nil when nothing is.
    package let apply: @Sendable (ConfigurationValue, inout GatewayConfiguration) -> String?

    package static let all: [ConfigurationKey] = [
        .integer(
            "shards", 1...256, "threads, each with its own event loop",
            { $0.shards = Int($1) }),
        .integer(
            "connectionLimit", 1...10_000_000, "connections held at once; by default what the descriptor limit allows",
            { $0.connectionLimit = Int($1) }),
        .cap(
            "messageCap", 1...1_000_000, "kept messages of one device", { $0.delivery.messageCap = $1 }),
        .cap(
            "byteCap", 1...1 << 32, "payload bytes kept for one device", { $0.delivery.byteCap = $1 }),
        .word(
            "capPolicy", CapPolicy.self,
            "at a device's cap the oldest unsent message is dropped and told, or the push is refused",
            { $0.delivery.capPolicy = $1 }),
        .cap(
            "memoryBytes", 65_536...1 << 50,
            "memory for what grows with load, as estimated; above it pushes get 30019",
            { $0.memoryBytes = $1 }),
        .cap(
            "storeBytes", 1...1 << 50, "payload bytes kept for all devices; above it pushes get 30019",
            { $0.storeBytes = $1 }),
        .cap(
            "broadcastBytes", 1...1 << 40, "payload bytes in memory of live pushes to all; above it they get 30019",
            { $0.broadcastBytes = $1 }),
        .integer(
            "broadcastsPerApp", 1...1_000, "live pushes to all of one app; above it they get 30019",
            { $0.broadcastsPerApp = Int($1) }),
        .integer(
            "broadcastsPerHour", 1...100_000, "pushes to all of one app within an hour; above it they get 30019",
            { $0.broadcastsPerHour = Int($1) }),
        .integer(
            "broadcastWakesPerSecond", 1...1_000_000,
            "wake-ups a second for pushes to all, of all apps together",
            { $0.broadcastWakesPerSecond = Int($1) }),
        .integer(
            "scheduledPerApp", 1...100_000,
            "scheduled tasks of one app that wait for their time; above it they get 30019",
            { $0.scheduledPerApp = Int($1) }),
        .integer(
            "broadcastGapHours", 1...8_760,
            "hours after the end of a push to all in which a device that missed it is told so",
            { $0.broadcastRetention = .seconds(3_600 * $1) }),
        .integer(
            "listTasksPerApp", 1...10_000_000,
            "tasks of one app from `/push/list/message` that are remembered; above it they get 30019",
            { $0.listTasksPerApp = Int($1) }),
        .cap(
            "listStoreBytes", 65_536...1 << 50, "payload bytes of such tasks on the disk; above it they get 30019",
            { $0.listStoreBytes = $1 }),
        .integer(
            "listContentBytes", 65_536...1 << 40,
            "memory for contents of such tasks; the rest is read from the disk when it is needed",
            { $0.listContentBytes = Int($1) }),
        .integer(
            "diskReserveBytes", 1...1 << 50, "free bytes around the data folder below which pushes get 30019",
            { $0.diskReserveBytes = Int($1) }),
        .milliseconds(
            "reattachGraceMs", 0...3_600_000, "how long a device whose connection was lost still counts as online",
            { $0.delivery.reattachGrace = $1 }),
        .milliseconds(
            "stubCooldownMs", 0...3_600_000, "pause between two default stubs to one device",
            { $0.delivery.stubCooldown = $1 }),
        .text("stubTitle", "title of the default stub; none by default", { $0.stubTitle = $1 }),
        .text("stubText", "text of the default stub", { $0.stubText = $1 }),
        .milliseconds(
            "handshakeDeadlineMs", 1...600_000, "from a connection's first byte to its welcome",
            {
                $0.session.handshakeDeadline = $1
                $0.link.handshakeDeadline = $1
            }),
        .seconds(
            "keepAliveDefaultSeconds", 1...86_400, "keep-alive for devices that wish none",
            { $0.session.keepAliveDefault = $1 }),
        .seconds(
            "keepAliveMinimumSeconds", 1...86_400, "shortest keep-alive granted", { $0.session.keepAliveMinimum = $1 }),
        .seconds(
            "keepAliveMaximumSeconds", 1...86_400, "longest keep-alive granted", { $0.session.keepAliveMaximum = $1 }),
        .integer(
            "windowDefault", 1...1_024, "messages in flight to a device that wishes no window",
            { $0.session.windowDefault = Int32(clamping: $1) }),
        .integer(
            "windowMaximum", 1...1_024, "largest window granted", { $0.session.windowMaximum = Int32(clamping: $1) }),
        .integer(
            "windowBytes", 1...1 << 30, "payload bytes in flight to a device",
            { $0.session.windowBytes = Int32(clamping: $1) }),
        .milliseconds(
            "ackDeadlineMs", 2...600_000, "silence of a device with messages in flight until it is closed",
            { $0.session.ackDeadline = $1 }),
        .milliseconds(
            "progressDeadlineMs", 2...3_600_000,
            "time without an acknowledgement until a device that answers is closed",
            { $0.session.progressDeadline = $1 }),
        .milliseconds(
            "slowDeadlineMs", 1...3_600_000, "time above the high-water mark until a device or a link is closed",
            {
                $0.session.slowDeadline = $1
                $0.link.slowDeadline = $1
            }),
        .integer(
            "highWaterBytes", 1...1 << 26, "unsent bytes of a connection above which no more is read for it",
            { $0.session.highWaterMark = Int($1) }),
        .integer(
            "compressionBytes", 64...65_536,
            "payloads of at least so many bytes are compressed for devices that take it; `off` compresses none",
            { $0.compressionBytes = Int($1) }, off: { $0.compressionBytes = nil }),
        .seconds(
            "linkKeepAliveSeconds", 1...86_400, "how often a backend's link must be heard", { $0.link.keepAlive = $1 }),
        .integer(
            "linkWindow", 1...65_536, "pushes of a backend's link without an answer", { $0.link.window = Int($1) }),
        .integer(
            "linkWindowBytes", 70_656...1 << 30, "bytes of those pushes", { $0.link.windowBytes = Int($1) }),
        .integer(
            "payloadCharacters", 1...65_536, "characters of a transmission",
            { $0.api = APILimits(payloadCharacters: Int($1), bodyBytes: $0.api.bodyBytes, users: $0.api.users) }),
        .integer(
            "bodyBytes", 1_024...1 << 26, "bytes of a request's body",
            {
                $0.api = APILimits(
                    payloadCharacters: $0.api.payloadCharacters, bodyBytes: Int($1), users: $0.api.users)
            }),
        .integer(
            "deviceRetentionDays", 1...36_500,
            "days after which a device that was not seen is removed; `off` removes none",
            { $0.deviceRetention = .seconds(86_400 * $1) }, off: { $0.deviceRetention = nil }),
        .integer(
            "aliasDevices", 1...1_000, "devices of one alias", { $0.api.users.aliasDevices = Int($1) }),
        .integer("deviceTags", 1...1_000, "custom tags of one device", { $0.api.users.tags = Int($1) }),
        .integer("tagCharacters", 1...256, "characters of a custom tag", { $0.api.users.tagCharacters = Int($1) }),
        .integer(
            "deviceTagCharacters", 1...65_536, "characters of all custom tags of a device",
            { $0.api.users.tagsCharacters = Int($1) }),
        .seconds(
            "requestWindowSeconds", 1...2_592_000, "how long a request id is remembered", { $0.requestWindow = $1 }),
        .integer(
            "requestBytes", 1_024...1 << 40, "memory for request ids, all shards together",
            { $0.requestBytes = Int($1) }),
        .seconds(
            "authClockSkewSeconds", 1...86_400, "how far a backend's clock may be off at /auth",
            { $0.authClockSkew = $1 }),
        .integer(
            "unsyncedBytes", 1_024...1 << 40,
            "accepted and not yet synced bytes of a shard above which pushes get 30019",
            { $0.unsyncedBytes = Int($1) }),
        .milliseconds(
            "drainDeadlineMs", 1...600_000, "how long a stop waits for what is on its way", { $0.drainDeadline = $1 }),
        .integer(
            "segmentBytes", 65_536...1 << 31, "size of a journal segment", { $0.segmentBytes = Int($1) }),
        .integer(
            "keptSegments", 1...1_024, "full segments kept before the oldest goes to the tables",
            { $0.keptSegments = Int($1) }),
        .integer(
            "receiptBytes", 1_048_576...1 << 44, "bytes of receipts that wait for the endpoint of one app",
            { $0.receipts.bytes = Int($1) }),
        .integer(
            "receiptHours", 1...8_760, "hours for which a receipt waits for its endpoint",
            { $0.receipts.age = .seconds(3_600 * $1) }),
        .milliseconds(
            "receiptDeadlineMs", 1...600_000, "how long an endpoint of receipts may take to answer",
            { $0.receipts.answerDeadline = $1 }),
        .milliseconds(
            "receiptPauseMs", 1...3_600_000, "longest pause between two tries to bring receipts to an endpoint",
            { $0.receipts.longestPause = $1 }),
        .integer(
            "timelineHours", 1...8_760, "hours for which the timeline log tells what happened to a message",
            { $0.timelineAge = .seconds(3_600 * $1) }),
        .integer(
            "timelineBytes", 1_048_576...1 << 44, "bytes of the timeline log; `off` keeps none",
            { $0.timelineBytes = Int($1) }, off: { $0.timelineBytes = nil }),
        .integer(
            "reportDays", 1...3_650, "days for which tasks and days are reported", { $0.reportDays = Int($1) }),
        .integer(
            "reportTasks", 1...1_000_000,
            "tasks that are reported; of more the oldest that have ended are forgotten", { $0.reportTasks = Int($1) }),
        .integer(
            "reportOffsetMinutes", 0...1_439,
            "how far ahead of UTC the clocks of reports are; above 840 it is a day less, so 1140 is five hours behind",
            { $0.reportOffset = UTCOffset(minutes: Int($1 > 840 ? $1 - 1_440 : $1)) }),
    ]

    private static func integer(
        _ name: String, _ range: ClosedRange<Int64>, unit: String = "", _ meaning: String,
        _ set: @escaping @Sendable (inout GatewayConfiguration, Int64) -> Void,
        off: (@Sendable (inout GatewayConfiguration) -> Void)? = nil
    ) -> ConfigurationKey {
        let described = "\(unit)\(range.lowerBound)…\(range.upperBound)\(off == nil ? "" : ", or \"off\"")"
        return ConfigurationKey(name: name, range: described, meaning: meaning) { value, configuration in
            if let off, value == .text("off") {
                off(&configuration)
                return nil
            }
            guard case .integer(let number) = value, range.contains(number) else {
                return "\(name) must be a whole number, \(described)"
            }
            set(&configuration, number)
            return nil
        }
    }

    /// A bound that may be none: a number, or the word for it.
    private static func cap(
        _ name: String, _ range: ClosedRange<Int64>, _ meaning: String,
        _ set: @escaping @Sendable (inout GatewayConfiguration, Cap) -> Void
    ) -> ConfigurationKey {
        let described = "\(range.lowerBound)…\(range.upperBound) or `\(Cap.unlimitedWord)`"
        return ConfigurationKey(name: name, range: described, meaning: meaning) { value, configuration in
            switch value {
            case .text(Cap.unlimitedWord): set(&configuration, .unlimited)
            case .integer(let number) where range.contains(number): set(&configuration, Cap(Int(number)))
            case .integer, .text, .flag, .other:
                return "\(name) must be a whole number, \(range.lowerBound)…\(range.upperBound), or the word "
                    + "\"\(Cap.unlimitedWord)\", which 0 does not stand for"
            }
            return nil
        }
    }

    /// One of the words of an enumeration.
    private static func word<Word: RawRepresentable & CaseIterable & SendableMetatype>(
        _ name: String, _: Word.Type, _ meaning: String,
        _ set: @escaping @Sendable (inout GatewayConfiguration, Word) -> Void
    ) -> ConfigurationKey where Word.RawValue == String {
        let words = Word.allCases.map { "`\($0.rawValue)`" }.joined(separator: " or ")
        return ConfigurationKey(name: name, range: words, meaning: meaning) { value, configuration in
            guard case .text(let text) = value, let word = Word(rawValue: text) else {
                return "\(name) must be \(words)"
            }
            set(&configuration, word)
            return nil
        }
    }

    private static func milliseconds(
        _ name: String, _ range: ClosedRange<Int64>, _ meaning: String,
        _ set: @escaping @Sendable (inout GatewayConfiguration, Duration) -> Void
    ) -> ConfigurationKey {
        integer(name, range, unit: "milliseconds, ", meaning) { set(&$0, .milliseconds($1)) }
    }

    private static func seconds(
        _ name: String, _ range: ClosedRange<Int64>, _ meaning: String,
        _ set: @escaping @Sendable (inout GatewayConfiguration, Duration) -> Void
    ) -> ConfigurationKey {
        integer(name, range, unit: "seconds, ", meaning) { set(&$0, .seconds($1)) }
    }

    private static func text(
        _ name: String, _ meaning: String, _ set: @escaping @Sendable (inout GatewayConfiguration, String) -> Void
    ) -> ConfigurationKey {
        ConfigurationKey(name: name, range: "text, 1…1024 bytes", meaning: meaning) { value, configuration in
            guard case .text(let text) = value, (1...1_024).contains(text.utf8.count) else {
                return "\(name) must be a text of 1…1024 bytes"
            }
            set(&configuration, text)
            return nil
        }
    }
}
