internal import FerryCore
internal import FerryRouting
internal import Testing

/// A device with so many messages that whatever is done for each of them must not look at the others.
struct BacklogTests {
    private static let now = Instant(milliseconds: 10_000)
    private static let count = 200_000
    /// Where each message moved all behind it, it took minutes.
    private static let bound = Duration.seconds(20)

    private func machine(_ sort: DeviceScenario.Sort, _ policy: DeliveryPolicy) -> DeviceStateMachine {
        var machine = DeviceStateMachine(acknowledged: .zero, gap: nil, hasToken: false)
        for seq in 1...UInt64(Self.count) {
            machine.restore(sort.message(seq: seq, now: Self.now, bytes: 10, stub: .none))
        }
        machine.finishRestoring(now: Self.now, wait: .seconds(1))
        return machine
    }

    /// The shard stood still for seconds, with all its devices.
    @Test(arguments: [DeviceScenario.Sort.short, .liveOnly])
    func `A backlog that ends together ends at once`(sort: DeviceScenario.Sort) {
        let policy = DeliveryPolicy()
        var machine = machine(sort, policy)
        var actions: [DeviceAction] = []
        let time = ContinuousClock().measure {
            machine.handle(.timePassed, now: Self.now + .seconds(2), policy: policy, actions: &actions)
        }
        #expect(machine.log.isEmpty)
        #expect(actions.filter { if case .end = $0 { true } else { false } }.count == Self.count)
        #expect(time < Self.bound)
    }

    @Test(arguments: [false, true])
    func `A backlog above the cap is cut at once`(isAttached: Bool) {
        var policy = DeliveryPolicy()
        policy.messageCap = .unlimited
        policy.byteCap = .unlimited
        var machine = machine(.long, policy)
        var actions: [DeviceAction] = []
        if isAttached {
            machine.handle(
                .attached(
                    SessionID(rawValue: 1), lastSeq: nil, window: 8, windowBytes: 1_000, continues: false),
                now: Self.now, policy: policy, actions: &actions)
            for seq in 1...4 as ClosedRange<UInt64> {
                machine.handle(.sent(Seq(seq)), now: Self.now, policy: policy, actions: &actions)
            }
        }
        policy.messageCap = Cap(10)
        let time = ContinuousClock().measure {
            machine.handle(.timePassed, now: Self.now, policy: policy, actions: &actions)
        }
        #expect(machine.log.count == 10)
        #expect(machine.log.first?.seq == Seq(isAttached ? 1 : UInt64(Self.count) - 9))
        #expect(time < Self.bound)
    }
}
