internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// One thread's part of the gateway: its connections, the devices of its partitions, and its own event loop. Nothing in here
/// is shared; other threads talk to it through its mailbox. It is the driver of the pure machines: it reads, tells them what
/// happened, performs what they decide, and sends what has gathered once a tick.
///
/// The files beside this one hold its parts: `Shard+Connections` (sockets), `+Frames`, `+Output`, `+Handshake`, `+Session`
/// (devices' frames), `+Broadcast`, `+BroadcastDevices`, `+Pacing` and `+BroadcastWakes` (pushes to all), `+Lists`, `+Tags`
/// and `+ListDevices` (one content for many), `+Tasks`, `+ListStops`, `+SingleStops`, `+Revokes` and `+Schedules` (when a task
/// ends or begins), `+Devices` (a device's decisions), `+Delivery` (the stream to a device), `+Journal`
/// (what waits for the disk), `+Recovery`, `+Retirement`, `+HTTP`, `+API` (backends), `+Link` (backends' links), `+Users`,
/// `+Aliases`, `+Profiles`, `+Removal` (calls about devices), `+Wake` (stubs), `+Facts` and `+Timeline` (what happened).
struct Shard: ~Copyable {
    let index: Int
    let environment: ShardEnvironment
    let mailbox: Mailbox<ShardMessage>
    let poller: Poller
    /// Where connections are lines in memory; nil where all are sockets.
    let network: MemoryNetwork?
    var connections: ConnectionSlab
    var devices: DeviceTable
    var broadcasts: BroadcastTable
    var wheel: TimerWheel
    var now: Instant

    // Beside the slab, while they last.
    var handshakes = SlotTable<HandshakeStateMachine>()
    var backends = SlotTable<BackendConnection>()
    var links = SlotTable<LinkConnection>()
    /// Bytes of unfinished requests, over all `backends`.
    var requestBytes = 0
    /// Bytes of answers that wait for their turn, over all `backends`.
    var answerBytes = 0
    /// Memory of all connections' buffers.
    var bufferBytes = 0
    /// Memory of pushes that wait for their device's record or for the first try with their request id, and of questions to
    /// the timeline.
    var waitingBytes = 0
    /// What of `environment.storeBudget` this shard holds.
    var storeBytes = 0
    /// The estimate that `environment.memoryBudget` has of this shard.
    var reportedMemory = 0
    /// The store says that the disk is nearly full.
    var isDiskShort = false

    // What waits for the store.
    var journal = JournalBatch()
    var unsynced: [UnsyncedBatch] = []
    var unsyncedHead = 0
    var unsyncedBytes = 0
    var lastTicket: UInt64 = 0
    /// Of an append: the last that the store refused, and the last that was refused with it.
    var lastRefusal: UInt64 = 0
    var lastVoided: UInt64 = 0
    /// Nothing has got to the disk since: what was refused and must not be lost is not there yet.
    var awaitsCommit = false
    var currentSegment: UInt32
    var loading: [CID: [DeviceWaiter]] = [:]
    var reads: [UInt64: PendingRead] = [:]
    /// Wake-ups that have no answer yet.
    var stubsInFlight = 0
    /// Records that must not be lost and are not on their way to the disk, with the time of the next try: the store refused
    /// them, or a retirement holds them back.
    var deferred: [(record: Record, effect: CommitEffect)] = []
    /// Reads that the disk failed, to be asked for again at the same time.
    var deferredReads: [PendingRead] = []
    var deferredUntil = Instant.distantFuture
    var forgotten: [(cid: CID, seq: Seq)] = []
    var requests: IdempotencyWindow
    var batches: [APIOrigin: BatchQuestion] = [:]
    var batchOutcomes: [BatchOutcomes] = []
    var statusQuestions: [APIOrigin: StatusQuestion] = [:]
    var audience = AudienceTable()
    var users = UserCalls()
    var censusQuestions: [APIOrigin: CensusQuestion] = [:]
    var requestWaiters: [Identifier128: [PushOrder]] = [:]
    // Of broadcasts, by the owner of their app: calls whose record is on its way, by request; broadcasts that some shard has
    // not given its places to, by task; and those that the tables do not have.
    var openBroadcasts: [Identifier128: [APIOrigin]] = [:]
    var placing: [Identifier128: PlacingBroadcast] = [:]
    var ownBroadcasts: [OwnBroadcast] = []
    var tasks = ShardTasks()
    /// Broadcasts whose places the store refused.
    var unplaced: [WantedPlaces] = []
    /// Those with a pace, and when they were looked at last.
    var pacing: [PacedBroadcast] = []
    var pacedAt = Instant.distantPast
    var wakes = BroadcastWakes()
    var lists: ListWork
    /// Pushes that came in in this turn, by owner of their devices.
    var orders: [PushOrders]
    /// Answers to pushes that came by themselves over HTTP, by the shard that they go to.
    var receipts: [[(origin: APIOrigin, receipt: PushReceipt)]]
    var receiptDesk: ReceiptDesk
    var presence = PresenceBoard()
    var revokedTokens: [[UInt8]: RevokedToken] = [:]
    /// How many tokens this shard heard to be revoked: what was found good before is looked at again.
    var revocationCount: UInt32 = 0
    var expiredTokensForgottenAt = Instant.distantPast
    /// Revocations whose answer waits, and how many shards do not know of them yet.
    var revocations: [APIOrigin: Int] = [:]
    /// Who holds the push tokens whose place is here, by digest.
    var tokenHolders: [UInt64: CID] = [:]
    /// Tokens that were found good, revoked ones among them, so that a proof is checked once and not at each request.
    var provenTokens: [String: (app: AppID, expiresAt: Instant)] = [:]
    /// Control rows of this shard that the tables may not have yet.
    var control = ControlJournal()
    var retirement: Retirement?
    var segmentDevices = SegmentDevices()
    /// Segments up to this one are in the tables.
    var retiredSegment: UInt32

    /// Highest `seq` given out in each partition.
    var sequences: [Seq]
    var lastSession: UInt64
    var random: RandomPool

    /// Devices with acks that are not journalled yet, and when they are to be at the latest.
    var acknowledging: [Int32] = []
    var acksDue = Instant.distantPast
    /// Records of ends that the disk refused, and until when these, and acks that it refused, wait for other records.
    var refusedEnds: [Record] = []
    var refusedEndsDue = Instant.distantPast

    // Per tick.
    var dirty: [Int32] = []
    var linkAnswers: [LinkAnswers] = []
    /// Links that may have an answer to send, by token.
    var answeringLinks: [UInt64] = []
    var linkActions: [[LinkAction]] = []
    var lineEvents: [MemoryNetwork.Event] = []
    /// Backends' connections that may have an answer to send, by token.
    var answeringBackends: [UInt64] = []
    var mail: [[ShardMessage]]
    var inbox: [ShardMessage] = []
    var fired: [Int] = []
    var deviceActions: [[DeviceAction]] = []
    var reuse = DeliveryMemory()
    /// Messages of one device whose content is at hand, in order of `seq`: just accepted, or just read.
    var atHand: [AcceptedMessage] = []
    var atHandCursor = 0
    /// The shard that takes the next backend that comes in here.
    var nextBackendShard: Int
    let readBuffer: UnsafeMutableRawBufferPointer
    let parser: APIRequestParser
    var compressor = PayloadCompressor()

    var counters = ShardSnapshot()
    /// Messages, counted from facts alone.
    var tally = DeliveryCounters()
    /// The same by task and by day, for backends.
    var book: ReportBook
    var curve: OnlineCurve
    var taskSlots = TaskSlots()
    /// Parts of reports that leave when what they tell of is on disk.
    var reportReplies: [ReportReply] = []
    var reportQuestions: [APIOrigin: ReportGathering] = [:]
    /// Facts of this tick, for the timeline.
    var facts = FactWriter()
    var isDraining = false
    var isQuiet = false
    var drainEnds = Instant.distantFuture
    var spareDescriptor: Int32

    private static let readBufferBytes = 65_536
    private static let earlyBatchBytes = 65_536

    init(
        index: Int, environment: ShardEnvironment, mailbox: Mailbox<ShardMessage>, recovery: ShardRecovery,
        network: MemoryNetwork? = nil
    ) throws(SystemError) {
        let poller = try Poller()
        try poller.add(mailbox.descriptor, .readable, token: PollToken.mailbox)
        if let listeners = environment.listeners {
            try poller.addShared(listeners.device, token: PollToken.deviceListener)
            try poller.addShared(listeners.http, token: PollToken.httpListener)
            if let link = listeners.link { try poller.addShared(link, token: PollToken.linkListener) }
        }
        self.index = index
        nextBackendShard = index
        self.environment = environment
        self.mailbox = mailbox
        self.network = network
        now = environment.clock()
        wheel = TimerWheel(now: now)
        connections = ConnectionSlab(capacity: environment.connectionLimit)
        random = environment.seed.map { RandomPool(repeatable: $0 &+ UInt64(index)) } ?? RandomPool()
        devices = DeviceTable(
            seed: Identifier128(high: random.next(), low: random.next()),
            apps: environment.configuration.apps.all.map(\.id))
        broadcasts = BroadcastTable(shard: index, shards: environment.configuration.shards)
        book = ReportBook(
            shard: index, offset: environment.configuration.reportOffset,
            now: now, retention: environment.configuration.reportDays,
            taskLimit: environment.configuration.reportTasks)
        curve = OnlineCurve(now: now)
        receiptDesk = ReceiptDesk(
            environment.configuration.apps.all.map(\.receipts), isActive: environment.receipts != nil)
        let requestSeed = Identifier128(high: random.next(), low: random.next())
        requests = IdempotencyWindow(
            length: environment.configuration.requestWindow,
            byteBudget: environment.requestBytes / environment.configuration.shards, seed: requestSeed)
        lists = ListWork(
            requestWindow: environment.configuration.requestWindow, contentBytes: environment.listContentBytes)
        sequences = recovery.highest
        currentSegment = recovery.firstSegment
        retiredSegment = recovery.firstSegment == 0 ? 0 : recovery.firstSegment - 1
        lastSession = UInt64.random(in: 1...UInt64(UInt32.max), using: &random) << 16
        mail = Array(repeating: [], count: environment.configuration.shards)
        orders = Array(repeating: PushOrders(), count: environment.configuration.shards)
        receipts = Array(repeating: [], count: environment.configuration.shards)
        readBuffer = .allocate(byteCount: Self.readBufferBytes, alignment: 64)
        parser = APIRequestParser(limits: environment.configuration.api)
        spareDescriptor = SpareDescriptor.open()
        self.poller = poller
        restore(recovery)
    }

    deinit { readBuffer.deallocate() }

    /// The event loop; returns when a drain is complete.
    mutating func run() {
        while true {
            tick(wait: hasMoreToDo ? 0 : timeout())
            if isDraining && isDrained() { break }
        }
        closeAll()
    }

    /// One turn of the loop. Waits for the first event, up to `wait` milliseconds (-1: for ever).
    mutating func tick(wait: Int32) {
        let count = poller.wait(milliseconds: network?.mayHaveEvents(for: index) == true ? 0 : wait)
        now = environment.clock()
        book.timePassed(now)
        // Before anything is read: what went to a device that leaves in this turn leaves before it is woken.
        continueWakes()
        for position in 0..<count {
            let event = poller.event(position)
            handle(event.token, readable: event.readable, writable: event.writable, hangup: event.hangup)
            takeOwnOrders()
            submitEarly()
        }
        if let network { takeLineEvents(network) }
        takeOwnOrders()
        advanceTimers()
        continuePacing()
        endBroadcastsInTime()
        drawCurve()
        releaseSchedules()
        forgetListStopsInTime()
        pumpRestoredLanes()
        endListsInTime()
        continueRemovals()
        submitJournal()
        // After the journal: what a device's row counts must have been asked to be appended before it.
        continueRetirement()
        continuePasses()
        continueUsers()
        continueTags()
        continueListSweep()
        continueSingleStops()
        sendBatchOutcomes()
        sendReceipts()
        answerBackends()
        answerLinks()
        sendPresence()
        flushDirty()
        handOverFacts()
        endDelivery()
        reportMemory()
        postMail()
    }

    /// The disk works on the first part of a long tick while the rest is read.
    mutating func submitEarly() {
        if journal.writer.bytes.count >= Self.earlyBatchBytes { submitJournal() }
    }

    /// What the end of a tick left over; no event would wake the loop for it.
    var hasMoreToDo: Bool {
        if let retirement, !awaitsCommit, !retirement.isTold, retirement.undecided.isEmpty,
            isDecided(retirement.decidedBy ?? 0)
        {
            return true
        }
        return !dirty.isEmpty || !journal.isEmpty || !((acknowledging.isEmpty && refusedEnds.isEmpty) || holdsAcks)
            || !forgotten.isEmpty
            || !orders[index].isEmpty || !batchOutcomes.isEmpty || !linkAnswers.isEmpty || !answeringLinks.isEmpty
            || !answeringBackends.isEmpty || !broadcasts.sweeping.isEmpty || hasUsersToDo || hasTagsToDo
            || hasReceiptsToDo || canContinueListSweep || hasSingleStopToContinue
    }

    private func timeout() -> Int32 {
        var next = wheel.nextWake ?? .distantFuture
        next = min(next, deferredUntil, broadcasts.nextEnd, nextRetention, nextTagTurn)
        next = min(next, users.removals.nextGivenUp, nextPacedTurn, nextWakeTurn)
        next = min(next, book.rowsDue, book.nextDay, curve.next, tasks.lists.nextEnd)
        if !acknowledging.isEmpty || !refusedEnds.isEmpty { next = min(next, max(acksDue, refusedEndsDue)) }
        if !isDraining { next = min(next, tasks.schedules.nextDue) }
        if isDraining { next = min(next, min(drainEnds, now + .milliseconds(20))) }
        guard next != .distantFuture else { return -1 }
        let wait = (next - environment.clock()).inMilliseconds
        return Int32(clamping: max(0, wait))
    }

    mutating func handle(_ token: UInt64, readable: Bool, writable: Bool, hangup: Bool) {
        switch token {
        case PollToken.mailbox: drainMailbox()
        case PollToken.deviceListener:
            if let listeners = environment.listeners { accept(listeners.device, kind: .handshake) }
        case PollToken.httpListener:
            if let listeners = environment.listeners { accept(listeners.http, kind: .http) }
        case PollToken.linkListener:
            if let link = environment.listeners?.link { accept(link, kind: .link) }
        default:
            guard let connection = connections.index(of: token) else { return }
            if writable { markDirty(connection) }
            if readable || hangup { read(connection, isGone: hangup) }
        }
    }

    private mutating func drainMailbox() {
        mailbox.drain(into: &inbox)
        var batch = inbox
        inbox = []
        for message in batch { handle(message) }
        batch.removeAll(keepingCapacity: true)
        inbox = batch
    }

    mutating func handle(_ message: ShardMessage) {
        switch message {
        case .store(let events): for event in events { handle(event) }
        case .handOver(let handOver): receive(handOver)
        case .backend(let transport, let peer, let kind): admit(transport, peer, kind)
        case .order(let order): take(order)
        case .reply(let reply): deliver(reply)
        case .linkAnswers(let answers): take(answers)
        case .stubAnswered(let cid, let plan, let answer): stubAnswered(cid, plan, answer)
        case .timelineRead(let order, let result): answer(order, result)
        case .report(let mail): take(mail)
        case .apiTokenRevoked(let digest, let expiresAt, let origin):
            revokedTokens[digest] = RevokedToken(expiresAt: expiresAt, segment: 0)
            revocationCount &+= 1
            endStreams(ofToken: digest)
            post(.reply(.revoked(origin)), to: origin.shard)
        case .place(let content):
            let wanted = WantedPlaces(content: content, lacking: nil)
            if content.broadcast.terms.speed > 0 { beginPaced(wanted) } else { place(wanted) }
        case .placesKnown(let task): placesKnown(task)
        case .task(let message): take(message)
        case .tokenClaimed(let claim): take(claim)
        case .tokenGivenUp(let claim): giveUp(claim)
        case .tokenLost(let claim, let holder): loseToken(claim, holder: holder)
        case .receiptNews(let news): take(news)
        case .presence(let mail): take(mail)
        case .snapshot(let tell): tell(snapshot())
        case .drain: beginDrain()
        }
    }

    // MARK: - Timers

    /// Connections and devices share the wheel: first come the connections, then the devices. A timer may fire early, never
    /// late: it only ever moves closer. A device with a connection has none unless something of it is due, so that one that
    /// is only there takes no room in the wheel but its connection's.
    mutating func arm(connection: Int, at deadline: Instant) {
        wheel.hasten(connection, to: deadline)
    }

    mutating func arm(device: Int, at deadline: Instant) {
        wheel.hasten(timer(of: device), to: deadline)
    }

    func timer(of device: Int) -> Int { connections.capacity + device }

    private mutating func advanceTimers() {
        wheel.advance(to: now, fired: &fired)
        forgetExpiredTokensInTime()
        guard !fired.isEmpty else { return }
        let due = fired
        fired.removeAll(keepingCapacity: true)
        for index in due {
            if index < connections.capacity {
                connectionTimer(index)
            } else {
                deviceTimer(index - connections.capacity)
            }
        }
        requests.expire(now: now, limit: 4_096)
    }
}
