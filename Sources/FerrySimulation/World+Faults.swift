internal import FerryGateway
internal import FerryIO
internal import FerryStore

/// What happens to the gateway's disk and tables.
extension World {
    func hurtDisk() {
        var faults = MemoryDisk.Faults()
        let kind = dice.below(4)
        trace.note("disk", kind)
        switch kind {
        case 0: faults.syncs = dice.within(1...2)
        case 1: faults.writes = dice.within(1...2)
        case 2: faults.reads = dice.within(1...3)
        default:
            disk.capacity = configuration.segmentBytes
            diskHealsAtStep = trace.step + dice.within(50...600)
            return
        }
        faults.syncsBefore = dice.below(3)
        if dice.chance(300) { faults.code = ErrorNumber.noSpace }
        disk.inject(faults)
    }

    /// Some of the next calls fail, or all of a kind for a while.
    func hurtTables() {
        var faults = MemoryTables.Faults()
        let kind = dice.below(5)
        let count = dice.chance(300) ? Int.max : dice.within(1...2)
        trace.note("tables", kind, count == .max ? 0 : count)
        switch kind {
        case 0: faults.writesInDoubt = count
        case 1: faults.writesBefore = dice.below(4)
        case 2: faults.gets = count
        case 3: faults.scans = count
        default: faults.isBehind = true
        }
        tables.inject(faults)
        diskHealsAtStep = trace.step + dice.within(20...400)
    }

    func healDisk() {
        diskHealsAtStep = nil
        disk.capacity = .max
        disk.inject(MemoryDisk.Faults())
        tables.inject(MemoryTables.Faults())
    }

    /// Whether the power will fail during this start, if the start gets that far: from some call on nothing works.
    func breakStart() -> Bool {
        guard !isHealing, dice.chance(scenario.brokenStarts) else { return false }
        var faults = MemoryDisk.Faults()
        var tableFaults = MemoryTables.Faults()
        if dice.chance(700) {
            faults.syncs = .max
            faults.writes = .max
            faults.writesBefore = dice.below(4)
            faults.syncsBefore = dice.below(4)
        } else {
            tableFaults.writesBefore = dice.below(2)
        }
        disk.inject(faults)
        tables.inject(tableFaults)
        return true
    }

    /// One turn of the store, or of those of its workers that are not held up.
    func storeTurn() {
        guard idleWorkers.untilStep > trace.step, !isHealing else {
            store?.step()
            ledger.storeTurned()
            checkSegments()
            return
        }
        store?.step(.all.subtracting(idleWorkers.workers))
    }

    func holdUpAWorker() {
        let workers = dice.pick([SteppedStore.Workers.journal, .tables, .reader, [.tables, .reader]]) ?? .tables
        idleWorkers = (workers, trace.step + dice.within(50...400))
        trace.note("idle", Int(workers.rawValue))
    }
}
