package import FerryCore

/// A broadcast as the journal and the tables hold it: one record, however many devices it is for.
package struct AcceptedBroadcast: Equatable, Sendable {
    package var app: AppID
    package var taskID: TaskID
    /// The same for all devices.
    package var messageID: MessageID
    package var acceptedAt: Instant
    /// `acceptedAt` itself for a live-only broadcast.
    package var expiresAt: Instant
    package var request: RequestKey
    /// Of them only what kind of payload it is, the window, the group, the callback and what goes with an own alert mean
    /// anything.
    package var traits: MessageTraits
    package var terms: BroadcastTerms
    /// Empty in what is found of a broadcast whose time is over.
    package var payload: [UInt8]

    package var isLiveOnly: Bool { expiresAt == acceptedAt }

    /// Of an app's broadcasts that are over the gateway knows so many: a device that missed more is told of the latest only.
    package static let overAtMost = 1_000

    package init(
        app: AppID, taskID: TaskID, messageID: MessageID, acceptedAt: Instant, expiresAt: Instant, request: RequestKey,
        traits: MessageTraits = .none, terms: BroadcastTerms = .none, payload: [UInt8]
    ) {
        self.app = app
        self.taskID = taskID
        self.messageID = messageID
        self.acceptedAt = acceptedAt
        self.expiresAt = expiresAt
        self.request = request
        self.traits = traits
        self.terms = terms
        self.payload = payload
    }
}

/// A broadcast's places in the streams of some partitions.
package struct BroadcastPlacement: Equatable, Sendable {
    /// The value of the broadcast's task id.
    package var task: Identifier128
    /// Each partition at most once, rising; no place is zero.
    package private(set) var places: [(partition: Partition, seq: Seq)]

    /// Places that are zero are none. `places` are in order of their partitions.
    package init(task: Identifier128, places: [(partition: Partition, seq: Seq)]) {
        self.task = task
        self.places = places.filter { $0.seq > .zero }
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.task == right.task && left.places.elementsEqual(right.places) { $0 == $1 }
    }
}

extension ByteWriter {
    mutating func broadcast(_ broadcast: AcceptedBroadcast) {
        // No app's name is empty: that says that traits and terms come first.
        let traits = broadcast.traits.encoded + broadcast.terms.encoded
        if !traits.isEmpty {
            string([])
            string(traits)
        }
        string(broadcast.app.text.utf8)
        task(broadcast.taskID)
        identifier(broadcast.messageID.value)
        instant(broadcast.acceptedAt)
        instant(broadcast.expiresAt)
        identifier(broadcast.request.key)
        identifier(broadcast.request.content)
        string(broadcast.payload)
    }

    /// The count, then each partition as the distance from the one before it, less one, and its `seq`.
    mutating func placement(_ placement: BroadcastPlacement) {
        identifier(placement.task)
        varint(UInt64(placement.places.count))
        var next = 0
        for (partition, seq) in placement.places {
            varint(UInt64(max(0, partition.index - next)))
            varint(seq.rawValue)
            next = partition.index + 1
        }
    }
}

extension ByteReader {
    mutating func broadcast() -> AcceptedBroadcast? {
        guard let (traits, terms) = broadcastTraits(), let app = app(), let task = task(), let message = identifier(),
            let acceptedAt = instant(),
            let expiresAt = instant(), let key = identifier(), let content = identifier(), let payload = octets()
        else { return nil }
        return AcceptedBroadcast(
            app: app, taskID: task, messageID: MessageID(message), acceptedAt: acceptedAt, expiresAt: expiresAt,
            request: RequestKey(key: key, content: content), traits: traits, terms: terms, payload: payload)
    }

    /// `none` where there are none, nil where they cannot be read. They have one spelling.
    private mutating func broadcastTraits() -> (MessageTraits, BroadcastTerms)? {
        var ahead = self
        guard let name = ahead.string(limit: ahead.remaining) else { return nil }
        guard name.isEmpty else { return (.none, .none) }
        let limit = MessageTraits.encodedBytes + BroadcastTerms.encodedBytes
        guard let encoded = ahead.string(limit: limit), !encoded.isEmpty,
            let traits = MessageTraits(encoded: encoded), let terms = BroadcastTerms(encoded: encoded),
            (traits.encoded + terms.encoded).elementsEqual(encoded)
        else { return nil }
        self = ahead
        return (traits, terms)
    }

    mutating func placement() -> BroadcastPlacement? {
        guard let task = identifier(), let count = varint(), count <= UInt64(Limits.partitions) else { return nil }
        var places: [(partition: Partition, seq: Seq)] = []
        places.reserveCapacity(Int(count))
        var next = 0
        for _ in 0..<Int(count) {
            guard let distance = varint(), distance < UInt64(Limits.partitions), let seq = seq(), seq > .zero,
                next + Int(distance) < Limits.partitions
            else { return nil }
            let partition = next + Int(distance)
            places.append((Partition(index: partition), seq))
            next = partition + 1
        }
        return BroadcastPlacement(task: task, places: places)
    }
}

/// A broadcast's rows in the tables: one for its content, one for each placement that a retirement wrote, and one where its
/// sender stopped it. All go at the same time, when nobody is told any more that it was missed.
enum BroadcastRow {
    private static let content: UInt8 = 0
    private static let places: UInt8 = 1
    private static let stopped: UInt8 = 2

    static func key(_ broadcast: AcceptedBroadcast) -> [UInt8] { contentKey(broadcast.taskID.value) }
    static func contentKey(_ task: Identifier128) -> [UInt8] { task.bytes + [content] }

    /// nil when it is no key of a row.
    static func task(_ key: UnsafeRawBufferPointer) -> Identifier128? {
        var reader = ByteReader(key)
        return reader.identifier()
    }

    static func stopKey(_ task: Identifier128) -> [UInt8] { task.bytes + [stopped] }

    static func stopValue(_ forgetAt: Instant) -> [UInt8] {
        var writer = ByteWriter()
        writer.instant(forgetAt)
        return writer.bytes
    }

    static func isStop(_ key: UnsafeRawBufferPointer) -> Bool {
        var reader = ByteReader(key)
        return reader.identifier() != nil && reader.byte() == stopped
    }

    static func isContent(_ key: UnsafeRawBufferPointer) -> Bool {
        var reader = ByteReader(key)
        return reader.identifier() != nil && reader.byte() == content
    }

    /// `segment` and `shard` are those of the retirement, so that one that starts over writes the same rows.
    static func key(_ placement: BroadcastPlacement, segment: UInt32, shard: Int) -> [UInt8] {
        var writer = ByteWriter()
        writer.identifier(placement.task)
        writer.byte(places)
        writer.uint32(segment)
        writer.uint32(UInt32(truncatingIfNeeded: shard))
        return writer.bytes
    }

    static func value(_ broadcast: AcceptedBroadcast, forgetAt: Instant) -> [UInt8] {
        var writer = ByteWriter()
        writer.instant(forgetAt)
        writer.broadcast(broadcast)
        return writer.bytes
    }

    static func value(_ placement: BroadcastPlacement, forgetAt: Instant) -> [UInt8] {
        var writer = ByteWriter()
        writer.instant(forgetAt)
        writer.placement(placement)
        return writer.bytes
    }

    static func forgetAt(_ value: UnsafeRawBufferPointer) -> Instant? {
        var reader = ByteReader(value)
        return reader.instant()
    }

    enum Found {
        case content(AcceptedBroadcast)
        case places(BroadcastPlacement)
        /// The task that was stopped.
        case stopped(Identifier128)
    }

    /// nil when it is none.
    static func read(key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> Found? {
        var keyReader = ByteReader(key)
        var reader = ByteReader(value)
        guard let task = keyReader.identifier(), let kind = keyReader.byte(), reader.instant() != nil else {
            return nil
        }
        switch kind {
        case content:
            guard let broadcast = reader.broadcast(), reader.isAtEnd, broadcast.taskID.value == task else { return nil }
            return .content(broadcast)
        case places:
            guard let placement = reader.placement(), reader.isAtEnd, placement.task == task else { return nil }
            return .places(placement)
        case stopped: return reader.isAtEnd ? .stopped(task) : nil
        default: return nil
        }
    }
}
