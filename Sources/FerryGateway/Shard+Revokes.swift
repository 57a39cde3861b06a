internal import FerryAPI
internal import FerryCore
internal import FerryRouting
internal import FerryStore

/// A revoke of a push to one device, and what of the device's messages is to be looked at before it is accepted.
struct PendingRevoke {
    /// One.
    let waiting: PushOrders
    let weight: Int
    /// The first is being read.
    var looks: [SingleLook]
}

/// `push_message.revoke`: what is kept of the earlier task ends in the same batch as the revoke is accepted with; the revoke itself
/// is a message, so that devices hear of it that have the earlier one, or may have it. One to all devices stops the task.
extension Shard {
    private static func task(_ payload: UnsafeRawBufferPointer) -> TaskID? {
        TaskID(RevokeContent(encoded: payload).taskID)
    }

    /// Of a push to one device nothing is in memory but that it is kept: the order waits for what is read. False: there is nothing
    /// to look at.
    mutating func looksFirst(_ order: PushOrder, _ contents: UnsafeRawBufferPointer, _ device: Int) -> Bool {
        guard devices.appNumber(of: device) == Int(order.app),
            let task = Self.task(PushOrders.content(of: order, in: contents).payload), task.kind == .single,
            !task.mayHaveSeveralDevices, Partition(ofSingle: task.value) == Partition(of: order.cid)
        else { return false }
        let looks = looks(device, SingleTask(app: devices.app(of: device), task: task))
        guard !looks.isEmpty else { return false }
        waitingBytes += order.weight
        goOn(PendingRevoke(waiting: PushOrders.alone(order, in: contents), weight: order.weight, looks: looks))
        return true
    }

    mutating func goOn(_ revoke: PendingRevoke) {
        if let look = revoke.looks.first { return read(look, .revoking(revoke)) }
        waitingBytes -= revoke.weight
        revoke.waiting.withContents { contents in
            for order in revoke.waiting.orders {
                accept(order, PushOrders.content(of: order, in: contents), device: devices.index(of: order.cid))
            }
        }
    }

    mutating func revokeRead(_ revoke: PendingRevoke, _ messages: [AcceptedMessage?]) {
        var revoke = revoke
        let look = revoke.looks.removeFirst()
        if takeBack(look, messages) { revoke.looks = [] }
        goOn(revoke)
    }

    /// The revoke is on its way to the disk.
    mutating func takeBackRevoked(_ payload: UnsafeRawBufferPointer, _ device: Int) {
        guard !devices[device].isBlocked, let task = Self.task(payload) else { return }
        if task.kind == .single {
            let cid = devices[device].cid
            for message in tasks.several.find(task.value) where message.cid == cid {
                _ = takeBack(cid, message.seq, devices.app(of: device))
            }
        } else if let number = taskSlots.number(of: task.value) {
            endReferences(of: [number], device)
        }
    }

    /// It is for all devices: nobody gets the earlier task any more.
    mutating func stopRevoked(_ payload: UnsafeRawBufferPointer, _ app: AppID) {
        if let task = Self.task(payload) { stop(task, app, nil) }
    }
}
