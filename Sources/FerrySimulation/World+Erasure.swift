internal import FerryClientCore
internal import FerryCore
internal import FerryWire

/// Devices that a backend has erased, whatever was kept for them, wherever it lay.
extension World {
    /// The network and the disk are well. One device goes, at times with a crash behind the answer; nothing of it may be found
    /// then, and its client comes back as another device.
    func eraseSomeone() throws {
        guard !isOverLinks, dice.chance(300), let backend = backends.first else { return }
        // Of two programs with one identity each would become a device of its own.
        let single = ledger.devices.indices.filter { device in
            ledger.devices[device].cid != nil && clients.count { $0.device == device } == 1
        }
        guard let device = dice.pick(single), let cid = ledger.devices[device].cid else { return }
        trace.note("erase", device)
        ledger.erasing(device)
        try ask(backend, .erase(device, cid: cid.description, isGone: false))
        guard violation == nil else { return }
        if dice.chance(500) {
            crash(.killed)
            startsAtStep = 0
            for _ in 0..<20 where violation == nil { try round(advance: 100) }
        }
        // Now there is nothing to erase.
        try ask(backend, .erase(device, cid: cid.description, isGone: true))
    }

    /// Until it is answered.
    private func ask(_ backend: ScriptedBackend, _ call: BackendCall) throws {
        for _ in 0..<400 where violation == nil {
            if backend.open.isEmpty {
                if ledger.erased == call.erasure { return }
                backend.call(call)
            }
            try round(advance: 10)
        }
        if violation == nil { report(Violation(promise: "P6", what: "the end of a device is not answered")) }
    }
}

extension BackendCall {
    /// Names a call that ends a device.
    var erasure: Ledger.Erasure? {
        guard case .erase(_, let cid, let isGone) = self else { return nil }
        return Ledger.Erasure(cid: cid, isGone: isGone)
    }
}

extension Ledger {
    /// The last call to end a device that was answered as it must be.
    struct Erasure: Equatable {
        let cid: String
        let isGone: Bool
    }

    /// The device is about to go: what was posted to it may be lost, or come to the one that follows it.
    func erasing(_ device: Int) {
        for number in posts.indices where posts[number].device == device {
            // What each device gets at its time may come to this one no more.
            let isAtOnce = !posts[number].isByAndBy && posts[number].scheduledAt == nil
            posts[number].wasOwed = posts[number].isOwed && posts[number].isAccepted && isAtOnce
            posts[number].isErased = true
            posts[number].isOwed = false
            posts[number].mayBeTwice = true
            if isOwedReceipt(posts[number]) { posts[number].endedAs = devices[device].cid }
        }
        devices[device].formerCID = devices[device].cid
        devices[device].cid = nil
        devices[device].wasErased = true
        devices[device].hasToken = false
    }

    /// Its client has a new identity, and that has a stream of its own.
    func registered(_ device: Int) {
        guard devices[device].wasErased else { return }
        devices[device].seqs = [:]
        devices[device].posts = [:]
        devices[device].settled = .zero
        devices[device].acknowledging = ([], 0)
        devices[device].stubStep = nil
        devices[device].stubInFlight = false
        devices[device].stubAnsweredAt = nil
    }
}
