internal import FerryAPI
internal import FerryCore
internal import FerryRouting
internal import FerryStore

/// A task of one app, as a stop names it.
struct SingleTask: Hashable, Sendable {
    let app: AppID
    let task: TaskID
}

/// A look for the message of a push to one device among all that are kept in its partition.
struct SingleStop {
    let single: SingleTask
    /// Where it is in the table of devices.
    var cursor = 0
    /// Reads under way.
    var open = 0
}

/// Messages of a device that are read to see of which task they are.
struct SingleLook {
    let cid: CID
    let single: SingleTask
    let seqs: [Seq]
}

/// Stops of pushes to devices, by cid or by name. Nothing is noted for a task of one message, so it is looked for where its id
/// says that it may be, and read; those of several devices are found by their name. The call is answered when the ends are on disk.
/// What is not kept is not sent any more, so that is success too.
extension Shard {
    private static var readsAtMost: Int { 8 }
    private static var messagesPerRead: Int { 64 }
    private static var bytesPerRead: Int { 262_144 }
    private static var visitsPerTurn: Int { 4_096 }

    /// Who may have messages of the task.
    func ownersOfSingle(_ task: Identifier128) -> Range<Int> {
        if task.isOfSeveral { return 0..<environment.shards }
        let owner = Partition(ofSingle: task).owner(among: environment.shards)
        return owner..<owner + 1
    }

    /// The message is kept, or about to be: it is one of several.
    mutating func noteOfSeveral(_ task: Identifier128, _ cid: CID, _ seq: Seq) {
        var several = SeveralTasks()
        swap(&several, &tasks.several)
        several.add(task, SeveralTasks.Message(cid: cid, seq: seq)) { message in
            guard let device = devices.index(of: message.cid) else { return false }
            return devices[device].machine.isKept(message.seq)
        }
        swap(&several, &tasks.several)
    }

    // MARK: - The owner of the app

    /// `origin` nil: nobody waits for the answer.
    mutating func stopSingle(_ task: TaskID, _ app: AppID, _ origin: APIOrigin?) {
        let single = SingleTask(app: app, task: task)
        let waiting = origin.map { [$0] } ?? []
        if tasks.stoppingSingles[single] != nil {
            tasks.stoppingSingles[single]?.waiting += waiting
            return
        }
        let owners = ownersOfSingle(task.value)
        tasks.stoppingSingles[single] = SingleStopping(missing: owners.count, waiting: waiting)
        for owner in owners { post(.task(.stopSingle(single)), to: owner) }
    }

    mutating func singleStopped(_ single: SingleTask, isOnDisk: Bool) {
        guard var stopping = tasks.stoppingSingles.removeValue(forKey: single) else { return }
        stopping.missing -= 1
        if !isOnDisk { stopping.hasFailed = true }
        guard stopping.missing <= 0 else {
            tasks.stoppingSingles[single] = stopping
            return
        }
        for origin in stopping.waiting {
            tell(origin, stopping.hasFailed ? .failure(.busy(retryAfterSeconds: 5)) : .success(.stopped))
        }
    }

    // MARK: - The owner of devices

    mutating func beginStop(_ single: SingleTask) {
        guard single.task.mayHaveSeveralDevices else { return tasks.singleStops.append(SingleStop(single: single)) }
        var hasEnded = false
        for message in tasks.several.find(single.task.value) {
            if takeBack(message.cid, message.seq, single.app) { hasEnded = true }
        }
        finishStop(single, hasEnded: hasEnded)
    }

    /// Answers whether it was kept.
    mutating func takeBack(_ cid: CID, _ seq: Seq, _ app: AppID) -> Bool {
        guard let device = devices.index(of: cid), devices.app(of: device) == app, !devices[device].isLeaving,
            devices[device].machine.isKept(seq)
        else { return false }
        tell(device: device, .takenBack(seq, .taskStopped))
        return true
    }

    private mutating func finishStop(_ single: SingleTask, hasEnded: Bool) {
        // An end of before may be one that the disk refused.
        guard hasEnded else { return tellStopped(single, isOnDisk: refusedEnds.isEmpty) }
        // With the record of the end, which is in this batch.
        journal.add(.task(.singleStopped(single)))
    }

    mutating func tellStopped(_ single: SingleTask, isOnDisk: Bool) {
        post(.task(.singleStopped(single, isOnDisk: isOnDisk)), to: environment.owner(of: single.app))
    }

    // MARK: - The look for one message

    var hasSingleStopToContinue: Bool {
        guard let stop = tasks.singleStops.first else { return false }
        return stop.open == 0 || (stop.open < Self.readsAtMost && stop.cursor < devices.endIndex)
    }

    /// A slice, behind all else of the tick.
    mutating func continueSingleStops() {
        guard var stop = tasks.singleStops.first else { return }
        let partition = Partition(ofSingle: stop.single.task.value)
        let end = min(devices.endIndex, stop.cursor + Self.visitsPerTurn)
        while stop.cursor < end, stop.open < Self.readsAtMost {
            let device = stop.cursor
            stop.cursor += 1
            guard devices.isInUse(device), Partition(of: devices[device].cid) == partition,
                devices.app(of: device) == stop.single.app
            else { continue }
            for look in looks(device, stop.single) {
                stop.open += 1
                read(look, .stopping(look))
            }
        }
        guard stop.cursor >= devices.endIndex, stop.open == 0 else {
            tasks.singleStops[0] = stop
            return
        }
        tasks.singleStops.removeFirst()
        finishStop(stop.single, hasEnded: false)
    }

    /// The device's own messages, in parts that are read at once.
    func looks(_ device: Int, _ single: SingleTask) -> [SingleLook] {
        let cid = devices[device].cid
        var looks: [SingleLook] = []
        var seqs: [Seq] = []
        var bytes = 0
        let log = devices[device].machine.log
        for place in 0..<log.count {
            let message = log[place]
            guard !message.isShared, !message.isReference else { continue }
            if seqs.count == Self.messagesPerRead || bytes > Self.bytesPerRead {
                looks.append(SingleLook(cid: cid, single: single, seqs: seqs))
                (seqs, bytes) = ([], 0)
            }
            seqs.append(message.seq)
            bytes += Int(message.payloadBytes)
        }
        if !seqs.isEmpty { looks.append(SingleLook(cid: cid, single: single, seqs: seqs)) }
        return looks
    }

    /// What has ended meanwhile is not read.
    mutating func read(_ look: SingleLook, _ read: PendingRead) {
        var wanted: [MessageReference] = []
        if let device = devices.index(of: look.cid) {
            let log = devices[device].machine.log
            for place in 0..<log.count {
                let message = log[place]
                guard look.seqs.contains(message.seq) else { continue }
                wanted.append(MessageReference(cid: look.cid, seq: message.seq, location: message.location))
            }
        }
        lastTicket &+= 1
        reads[lastTicket] = read
        reuse.reads.append(.read(ticket: lastTicket, wanted))
    }

    mutating func stopRead(_ look: SingleLook, _ messages: [AcceptedMessage?]) {
        let hasEnded = takeBack(look, messages)
        guard tasks.singleStops.first?.single == look.single else { return }
        tasks.singleStops[0].open -= 1
        guard hasEnded else { return }
        // There is no other; what is still read of it changes nothing.
        tasks.singleStops.removeFirst()
        finishStop(look.single, hasEnded: true)
    }

    /// Answers whether the message was among them, and is over now.
    mutating func takeBack(_ look: SingleLook, _ messages: [AcceptedMessage?]) -> Bool {
        for case let message? in messages where message.taskID == look.single.task {
            if takeBack(message.cid, message.seq, look.single.app) { return true }
        }
        return false
    }
}

/// A stop of such a task that shards have not answered.
struct SingleStopping {
    var missing: Int
    var waiting: [APIOrigin]
    var hasFailed = false
}
