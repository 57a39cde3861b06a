private import FerryCore
@testable private import FerryRouting
internal import Testing

/// An idle device's machine holds nothing beside itself: that is what 10,000 of them are measured by.
struct DeviceIdleTests {
    private static let start = Instant(milliseconds: 1_000_000)
    private static let session = SessionID(rawValue: 9)

    private static func message(_ seq: UInt64) -> KeptMessage {
        KeptMessage(
            seq: Seq(seq), expiresAt: start + .seconds(3_600),
            location: RecordLocation(segment: 1, offset: 0, length: 9),
            payloadBytes: 10, isLiveOnly: false, hasOwnAlert: false, wasOffline: false, stub: .none)
    }

    private static func tell(_ machine: inout DeviceStateMachine, _ events: DeviceEvent..., after: Duration = .zero) {
        var actions: [DeviceAction] = []
        for event in events { machine.handle(event, now: start + after, policy: DeliveryPolicy(), actions: &actions) }
    }

    private static func attached() -> DeviceStateMachine {
        var machine = DeviceStateMachine(acknowledged: Seq(4), gap: nil, hasToken: true)
        tell(&machine, .attached(session, lastSeq: nil, window: 64, windowBytes: 1_000, continues: false))
        return machine
    }

    @Test func `It begins with a message and is over with its acknowledgement`() {
        var machine = Self.attached()
        let idle = machine
        #expect(machine.work.isEmpty)
        Self.tell(&machine, .messageSynced(Self.message(5)), .sent(Seq(5)))
        #expect(!machine.work.isEmpty && machine.window.inFlight == 1)
        Self.tell(&machine, .acknowledged(Seq(5)))
        #expect(machine.work.isEmpty && machine.acknowledged == Seq(5) && machine.window.ackBound == Seq(5))
        #expect(machine != idle, "the acknowledged position stays")
        #expect(machine.window.messageLimit == 64 && machine.window.byteLimit == 1_000, "so do the window's limits")
    }

    @Test func `A message to a device that is there takes the short way, in memory that the one before it left`() {
        var machine = Self.attached()
        var spare = SpareWork()
        var ended: [KeptMessage] = []
        for seq in UInt64(5)..<100 {
            let sent = machine.keepSent(Self.message(seq), now: Self.start, policy: DeliveryPolicy(), spare: &spare)
            #expect(sent?.seq == Seq(seq) && machine.window.inFlight == 1 && spare.count == 0)
            #expect(!machine.acknowledgeAll(Seq(seq + 1), ended: &ended, spare: &spare), "what was never sent")
            #expect(machine.acknowledgeAll(Seq(seq), ended: &ended, spare: &spare))
            #expect(machine.work.isEmpty && spare.count == 1 && ended.last?.seq == Seq(seq))
        }
        #expect(ended.count == 95 && machine.acknowledged == Seq(99))
    }

    @Test func `A stub that was asked for outlives its message's end until it has cooled down`() {
        var machine = Self.attached()
        Self.tell(&machine, .messageSynced(Self.message(5)), .detached(Self.session, .bye), .dueSynced)
        Self.tell(&machine, .attached(Self.session, lastSeq: Seq(5), window: 1, windowBytes: 1, continues: false))
        #expect(machine.log.isEmpty && !machine.work.isEmpty)
        Self.tell(&machine, .stubAnswered(.standard(upTo: Seq(5), badge: 1, expiresAt: .distantFuture)))
        #expect(!machine.work.isEmpty && machine.deadline == Self.start + DeliveryPolicy().stubCooldown)
        Self.tell(&machine, .timePassed, after: DeliveryPolicy().stubCooldown)
        #expect(machine.work.isEmpty && machine.deadline == nil)
    }

    @Test func `A gap is held until it is acknowledged past`() {
        var machine = DeviceStateMachine(acknowledged: Seq(4), gap: Gap(upTo: Seq(6), expired: 1), hasToken: false)
        Self.tell(&machine, .attached(Self.session, lastSeq: nil, window: 2, windowBytes: 9, continues: false))
        #expect(machine.gap?.count == 1)
        Self.tell(&machine, .sent(Seq(6)), .acknowledged(Seq(6)))
        #expect(machine.work.isEmpty && machine.gap == nil)
    }

    @Test func `A login, a loss and the end of its grace need none`() {
        var machine = Self.attached()
        Self.tell(&machine, .detached(Self.session, .lost))
        #expect(machine.work.isEmpty)
        Self.tell(&machine, .timePassed, after: .seconds(60))
        #expect(machine.work.isEmpty && machine.isAtRest)
    }
}
