internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// Bounds on what the gateway takes in. They stand in front of calls of backends, of registrations when the disk is short,
/// and of new connections when memory is far above its budget: what is kept is delivered, acknowledged and journalled whatever is short, since that is what makes room.
extension Shard {
    // MARK: - Pushes

    /// What keeps the gateway from taking a push, looked at before anything is done for it.
    func shortage(for order: PushOrder) -> Shortage? {
        if isDiskShort { return .disk }
        return isMemoryShort(for: order.weight) ? .memory : nil
    }

    func isMemoryShort(for bytes: Int) -> Bool {
        environment.memoryBudget.isExceeded(by: memoryEstimate - reportedMemory + bytes)
    }

    /// Takes what the message will need of its device's cap and of the store; answers why it cannot, with nothing taken.
    mutating func takeRoom(for order: PushOrder, device: Int) -> APIError? {
        let bytes = Int(order.payloadBytes)
        if environment.configuration.delivery.capPolicy == .refuse, let exceeded = exceededCap(order, device) {
            counters.refused[Shortage.device.rawValue] += 1
            return .deviceFull(exceeded, cid: order.cid)
        }
        guard environment.storeBudget.take(bytes) else { return refusal(.store) }
        storeBytes += bytes
        devices[device].pending.add(bytes: bytes)
        return nil
    }

    private func exceededCap(_ order: PushOrder, _ device: Int) -> CapExceeded? {
        devices[device].machine.exceededCap(
            bytes: Int(order.payloadBytes), isLiveOnly: order.ttl == .liveOnly, pending: devices[device].pending,
            policy: environment.configuration.delivery)
    }

    /// The message is not kept any more, or never will be.
    mutating func giveBackRoom(_ bytes: Int) {
        storeBytes -= bytes
        // To the shared sum at the end of the turn.
        reuse.returnedBytes += bytes
    }

    /// The message was kept before this process began.
    mutating func keepRoom(_ bytes: Int) {
        storeBytes += bytes
        environment.storeBudget.change(by: bytes)
    }

    /// Counts the refusal and words it.
    mutating func refusal(_ shortage: Shortage) -> APIError {
        counters.refused[shortage.rawValue] += 1
        if shortage == .memory { environment.memoryBudget.noteRefusal() }
        switch shortage {
        case .sync: return .busy(retryAfterSeconds: 1)
        case .memory, .store, .disk, .device, .broadcasts, .lists: return .busy(retryAfterSeconds: 5)
        }
    }

    mutating func diskRoomChanged(isShort: Bool) {
        isDiskShort = isShort
        // One shard speaks for all.
        guard index == 0 else { return }
        if isShort {
            EventLog.write(
                .warning, "the disk is nearly full: pushes are refused",
                ["key": "diskReserveBytes", "below": String(environment.configuration.usedDiskReserve)])
        } else {
            EventLog.write(.info, "the disk has room again: pushes are taken")
        }
    }

    // MARK: - Memory

    /// What of the process's memory grows with load and is this shard's, in bytes. The factors are measured: what the
    /// allocator and growing arrays add is in them.
    var memoryEstimate: Int {
        (tally.kept - broadcasts.unreached) * MemoryCost.keptMessage + broadcasts.bytes + lists.bytes + devices.count
            * MemoryCost.device
            + connections.count * MemoryCost.connection + connectionsWithMore * MemoryCost.besideConnection
            + backends.count * MemoryCost.knownHead
            + requests.count * IdempotencyWindow.bytesPerEntry + tokenHolders.count * MemoryCost.tokenHolder
            + audience.bytes + book.count * MemoryCost.report
            + revokedTokens.count * MemoryCost.revokedToken + loading.count * MemoryCost.loading + bufferBytes
            + requestBytes + answerBytes + waitingBytes + segmentDevices.count * MemoryCost.inSegment
            + tasks.lists.count * ListStops.bytesPerStop + tasks.several.count * SeveralTasks.bytesPerMessage
            + receiptDesk.memoryBytes + (unsyncedBytes + journal.writer.bytes.count) * MemoryCost.unsyncedFactor
    }

    /// Connections that have something beside their slot.
    private var connectionsWithMore: Int { handshakes.count + backends.count + links.count }

    mutating func reportMemory() {
        let estimate = memoryEstimate
        environment.memoryBudget.change(by: estimate - reportedMemory)
        reportedMemory = estimate
    }

    /// Brings the sum up to date with the memory of one connection's buffers.
    mutating func countBuffers(_ slot: Int) {
        let held = connections[slot].input.heldBytes + connections[slot].output.heldBytes
        bufferBytes += held - Int(connections[slot].countedBytes)
        connections[slot].countedBytes = Int32(clamping: held)
    }

    /// Unsent bytes above which a device's log is not read on. While memory is short it is little, so that many devices
    /// that do not read cannot take much more.
    var streamMark: Int {
        let mark = environment.configuration.session.highWaterMark
        return environment.memoryBudget.isExceeded(by: 0) ? min(mark, MemoryCost.shortStreamMark) : mark
    }
}

/// Bytes that one of each takes.
enum MemoryCost {
    static let keptMessage = 64
    /// Its entry, name and timer; and what its machine holds beside itself while something is kept for it.
    static let device = 448
    /// Its slot and timer.
    static let connection = 128
    /// What a connection has beside its slot until its device has logged in, and a backend's for good.
    static let besideConnection = 896
    /// A backend's connection keeps the head of a request, to know the next one by.
    static let knownHead = 2_176
    static let tokenHolder = 64
    /// A message or a change of a record, until its segment retires.
    static let inSegment = 8
    static let revokedToken = 192
    /// Counters of a task, or of an app's day.
    static let report = 384
    /// A call about a thousand users, while it is answered.
    static let userCall = 262_144
    /// A device whose record is asked for.
    static let loading = 256
    /// A push beside its payload.
    static let order = 512
    /// An event of a device's timeline, on its way through the log to the answer.
    static let timelineEvent = 256
    /// A record on its way to the disk is in the shard's memory and in the store's.
    static let unsyncedFactor = 3
    static let shortStreamMark = 4_096
}

extension TimelineQuery {
    /// What its answer takes of memory at most.
    var weight: Int { limit * MemoryCost.timelineEvent }
}

extension APIError {
    /// A device keeps as much as it may, and `capPolicy` is to refuse. 30019, as a repeat makes sense: the device may come.
    static func deviceFull(_ exceeded: CapExceeded, cid: CID) -> APIError {
        let reason =
            switch exceeded {
            case .messages(let cap): "\(cap) messages are kept for it (messageCap)"
            case .bytes(let cap): "\(cap) bytes may be kept for it (byteCap)"
            }
        return APIError(
            code: 30019, message: "the device \(cid) is full, please retry later: \(reason)", retryAfterSeconds: 60)
    }
}
