internal import FerryCore

/// What a device's machine holds while something is kept, on its way, due or cooling down. Most devices are idle most of the
/// time: they have none of it, and its parts then read as they are here.
struct DeviceWork: Hashable, Sendable {
    static let none = DeviceWork()

    var log = MessageLog()
    var gaps: [Gap] = []
    var flight = AckWindow.Flight()
    var unsyncedDrops: UInt32 = 0
    var unsyncedDue: UInt32 = 0
    var unsyncedFrom = Seq(.max)
    var defaultStub = DeviceStateMachine.DefaultStub.idle
    /// Says nothing while the log is empty.
    var earliestExpiry = Instant.distantFuture
    var handOverUntil = Instant.distantFuture

    /// Nothing would be lost with it.
    var isOver: Bool {
        log.isEmpty && gaps.isEmpty && flight.isOver && unsyncedDrops == 0 && unsyncedDue == 0 && defaultStub == .idle
    }
}

extension DeviceStateMachine {
    /// Whatever has come to be as in an idle device gives its memory back.
    mutating func endWork() {
        if !work.isEmpty, work[0].isOver { work = [] }
    }

    /// Begins the work if there is none.
    private var begun: DeviceWork {
        get { work.isEmpty ? .none : work[0] }
        _modify {
            if work.isEmpty { work = [.none] }
            yield &work[0]
        }
    }

    package internal(set) var log: MessageLog {
        _read { if work.isEmpty { yield DeviceWork.none.log } else { yield work[0].log } }
        _modify { yield &begun.log }
    }

    /// What was dropped and is not acknowledged past, by place in the stream. Only the last can still grow, and only until it
    /// is sent; so there are at most one more than a window has entries.
    var gaps: [Gap] {
        _read { if work.isEmpty { yield DeviceWork.none.gaps } else { yield work[0].gaps } }
        _modify { yield &begun.gaps }
    }

    package internal(set) var window: AckWindow {
        get {
            AckWindow(
                messageLimit: Int32(messageLimit), byteLimit: byteLimit, acknowledged: acknowledged,
                flight: work.isEmpty ? AckWindow.Flight() : work[0].flight)
        }
        set {
            messageLimit = Int16(clamping: newValue.messageLimit)
            byteLimit = newValue.byteLimit
            acknowledged = newValue.acknowledged
            let flight = newValue.flight
            if !work.isEmpty || !flight.isOver { begun.flight = flight }
        }
    }

    /// Drops in `gaps` whose records are not on disk yet; until then no gap may be told (P1).
    package internal(set) var unsyncedDrops: UInt32 {
        get { work.isEmpty ? 0 : work[0].unsyncedDrops }
        set { if newValue != unsyncedDrops { begun.unsyncedDrops = newValue } }
    }

    /// The first of them, `Seq(.max)` when there is none. Nothing behind it is sent: its ack would cover the drop, and after a
    /// crash the dropped message, kept again, would count as delivered and its gap be forgotten.
    var unsyncedFrom: Seq {
        get { work.isEmpty ? Seq(.max) : work[0].unsyncedFrom }
        set { if newValue != unsyncedFrom { begun.unsyncedFrom = newValue } }
    }

    /// Records that stubs are due that are not on disk yet; until then none is asked for (P1).
    var unsyncedDue: UInt32 {
        get { work.isEmpty ? 0 : work[0].unsyncedDue }
        set { if newValue != unsyncedDue { begun.unsyncedDue = newValue } }
    }

    var defaultStub: DefaultStub {
        get { work.isEmpty ? .idle : work[0].defaultStub }
        set { if newValue != defaultStub { begun.defaultStub = newValue } }
    }

    /// When the wake-up channel must have answered for what is with it; the distant past when something has yet to go there.
    var handOverUntil: Instant {
        get { work.isEmpty ? .distantFuture : work[0].handOverUntil }
        set { if newValue != handOverUntil { begun.handOverUntil = newValue } }
    }

    /// No message expires before this; exact after each look at all of them.
    var earliestExpiry: Instant {
        get { work.isEmpty ? .distantFuture : work[0].earliestExpiry }
        set { if newValue != earliestExpiry { begun.earliestExpiry = newValue } }
    }
}
