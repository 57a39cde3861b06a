internal import FerryCore

/// One message as its backend knows it: all attempts to post it bear the same `request_id`.
struct Post {
    let number: Int
    /// Index of the device.
    let device: Int
    /// Milliseconds; 0 is live only.
    let ttl: Int
    let hasOwnAlert: Bool
    let payloadBytes: Int
    /// A push to all is one post for each device; they have one call, one request and one payload, which bear the number of
    /// the first. nil for a push to one device.
    /// So are the posts of a task with stored content, which comes with a call of its own: devices are named in others.
    let first: Int?
    let isListed: Bool
    /// So are those of a push to all that meet a condition. Who gets it is fixed by the answer; each gets it at its time.
    let isTagged: Bool
    /// GeTui's: 1 to 4.
    let strategy: Int
    /// The wake-up channel took it, by strategy 2 or 4.
    var isWithChannel = false
    /// The device was registered, and its client knew, before the call.
    var isOwed = true
    /// Its device was erased, and was owed it before: it was accepted for that device.
    var wasOwed = false
    var isErased = false

    /// Of a push to all: devices a second; 0 has no limit.
    var speed = 0

    /// It is to be released then, by the gateway's clock, and is accepted for its devices no earlier.
    var scheduledAt: Instant?

    var attempts = 0
    /// Attempts that have no answer yet, and those whose answer was lost: the gateway may have taken either.
    var open = 0
    var lost = 0
    var firstSentStep = 0
    /// The earliest by the gateway's clock, which may be put back between two attempts.
    var firstSentAt = Instant.distantPast
    /// How many attempts of all posts there were before the first of this one.
    var sentBefore = 0
    /// The backend's connection and the place on it of the first attempt.
    var connection = 0
    var place = 0
    /// The first success that a backend read.
    var answeredStep: Int?
    var answeredLife = 0
    var answeredAt = Instant.distantPast
    /// As the answer had it; a link's says neither.
    var wasOnline: Bool?
    var taskID: String?
    /// Handed to some app of the device.
    var isHanded = false
    /// It was the device's own before the device was erased, under this identity: it ended there, at the latest.
    var endedAs: CID?
    /// A frame with it has left the gateway.
    var isSent = false
    var ownStubs = 0
    /// The step at which its sender first asked to stop it, and that at which he was told that it is.
    var stoppingStep: Int?
    var stoppedStep: Int?
    /// The gateway may have forgotten its request id before a repeat came: all of it may be there twice.
    var mayBeTwice = false

    init(
        number: Int, device: Int, ttl: Int, hasOwnAlert: Bool, payloadBytes: Int, first: Int? = nil,
        isListed: Bool = false, isTagged: Bool = false, strategy: Int = 1
    ) {
        self.number = number
        self.device = device
        self.ttl = ttl
        self.hasOwnAlert = hasOwnAlert
        self.payloadBytes = payloadBytes
        self.first = first
        self.isListed = isListed
        self.isTagged = isTagged
        self.strategy = strategy
    }

    /// Its time is not over before this.
    var expiresAt: Instant { max(firstSentAt, scheduledAt ?? .distantPast) + .milliseconds(ttl) }
    /// The wake-up channel has it first.
    var handsOver: Bool { strategy == 2 || strategy == 4 }
    /// The app of its device is owed it.
    var isOwedToApp: Bool { strategy != 2 && !(strategy == 4 && isWithChannel) }

    var isForAll: Bool { first != nil && !isListed && !isTagged }
    /// Each device has it at a time of its own.
    var isByAndBy: Bool { isTagged || speed > 0 }
    /// A push to all that wakes those who are away by the gateway's own text.
    var wakesAll: Bool { isForAll && strategy == 1 && !isLiveOnly && !hasOwnAlert }
    var isLiveOnly: Bool { ttl == 0 }
    var isAccepted: Bool { answeredStep != nil }
    /// Every attempt was refused, so it is not kept.
    var isRefused: Bool { attempts > 0 && !isAccepted && open == 0 && lost == 0 }
    var isLong: Bool { ttl >= Self.longTTL }
    static let longTTL = 86_400_000

    var requestID: String { "request-\(1_000_000 + (first ?? number))" }
    var marker: String { "payload-\(first ?? number)." }
    var alertMarker: String { "alert-\(first ?? number)." }

    /// How many bytes `payload` has.
    var payloadSize: Int { max(payloadBytes, marker.utf8.count) }

    var payload: String {
        marker + String(decoding: [UInt8](repeating: 120, count: payloadSize - marker.utf8.count), as: UTF8.self)
    }

    /// The number in a payload, if a post of this kind made it.
    static func number(inPayload bytes: [UInt8]) -> Int? { number(in: bytes, after: "payload-") }
    static func number(inAlert bytes: [UInt8]) -> Int? { number(in: bytes, after: "alert-") }

    static func contains(_ text: String, in bytes: [UInt8]) -> Bool { bytes.end(of: text) != nil }

    static func number(in bytes: [UInt8], after text: String) -> Int? {
        guard let end = bytes.end(of: text) else { return nil }
        let digits = bytes[end...].prefix { (48...57).contains($0) }
        return Int(String(decoding: digits, as: UTF8.self))
    }
}

extension [UInt8] {
    /// Where the first `text` at or behind `start` ends.
    func end(of text: String, from start: Int = 0) -> Int? {
        var text = text
        return text.withUTF8 { wanted in
            withUnsafeBufferPointer { bytes -> Int? in
                guard let first = wanted.first, bytes.count >= wanted.count else { return nil }
                var place = start
                while place <= bytes.count - wanted.count {
                    if bytes[place] == first, wanted.indices.allSatisfy({ bytes[place + $0] == wanted[$0] }) {
                        return place + wanted.count
                    }
                    place += 1
                }
                return nil
            }
        }
    }

    /// The text from `start` up to the next quotation mark.
    func word(from start: Int) -> String { String(decoding: self[start...].prefix { $0 != 34 }, as: UTF8.self) }
}

/// What the ledger knows of one device.
struct DeviceFacts {
    var cid: CID?
    var seqs: [Int: Seq] = [:]
    var posts: [Seq: Int] = [:]
    /// The link with the newest session, while nothing that ends it has been fed.
    var current: ObjectIdentifier?
    /// The links whose session began at this step.
    var newcomers: (links: [Link], step: Int) = ([], -1)
    /// Since this step the device has been online without a break, in the gateway's eyes for certain.
    var onlineSinceStep: Int?
    /// It stays online until this, at the least, after its session was lost.
    var graceUntil = Instant.distantPast
    /// The last step at which it was offline for certain.
    var offlineStep = -1
    var offlineSince: Instant?
    /// Since when no link of it is open at the gateway.
    var alone = Instant.distantPast
    var openLinks = 0
    /// Every shard has had a turn since the current link said `background`.
    var backgroundStep: Int?
    /// The gateway knows that everything up to here is with the app.
    var settled = Seq.zero
    var gaps: [Seq: Int] = [:]
    /// Sent and acknowledged in the current session; delivered for certain once every shard has had a turn in it.
    var acknowledging: (numbers: Set<Int>, step: Int) = ([], 0)

    var hasToken = false
    var tokenStep = 0
    var stubInFlight = false
    var stubAnsweredAt: Instant?
    var stubAnsweredCycle: Int?
    var stubStep: Int?
    /// In this life, those that no message of its own explains.
    var stubsForAll = 0
    /// The last step at which it may have been there.
    var onlineStep = -1
    var allStubSteps: [Int] = []
    /// Of these, the stubs that the channel has answered, or that were asked for in this life: those that a crash lost must be
    /// asked for again.
    var wakings: [Int] = []
    var offlineSinceStep = 0
    /// All tokens that it ever named.
    var everClaimed: Set<Int> = []
    /// A backend has asked for its end.
    var wasErased = false
    /// What it was called before.
    var formerCID: CID?
}
