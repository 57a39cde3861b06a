private import FerryCore
private import FerryRouting
internal import Testing

struct CapPolicyTests {
    private static let now = Instant(milliseconds: 10_000)

    private func policy(_ capPolicy: CapPolicy, messages: Cap = .unlimited, bytes: Cap = .unlimited) -> DeliveryPolicy {
        var policy = DeliveryPolicy()
        policy.capPolicy = capPolicy
        policy.messageCap = messages
        policy.byteCap = bytes
        return policy
    }

    private func machine(keeping count: Int, _ policy: DeliveryPolicy, attached: Bool = false) -> DeviceStateMachine {
        var machine = DeviceStateMachine(acknowledged: .zero, gap: nil, hasToken: false)
        var actions: [DeviceAction] = []
        if attached {
            machine.handle(
                .attached(
                    SessionID(rawValue: 1), lastSeq: nil, window: 1, windowBytes: 1_000, continues: false),
                now: Self.now, policy: policy, actions: &actions)
        }
        for seq in 1...max(1, UInt64(count)) where count > 0 {
            machine.handle(
                .messageSynced(DeviceScenario.Sort.long.message(seq: seq, now: Self.now, bytes: 100, stub: .none)),
                now: Self.now, policy: policy, actions: &actions)
        }
        return machine
    }

    private func pending(_ count: Int) -> PendingMessages {
        var pending = PendingMessages()
        for _ in 0..<count { pending.add(bytes: 100) }
        return pending
    }

    @Test func `What is on its way to the disk counts against the caps`() {
        let byCount = policy(.refuse, messages: 3)
        let byBytes = policy(.refuse, bytes: 350)
        for kept in 0...3 {
            for underway in 0...3 {
                let total = kept + underway
                #expect(
                    machine(keeping: kept, byCount).exceededCap(
                        bytes: 100, isLiveOnly: false, pending: pending(underway), policy: byCount)
                        == (total >= 3 ? .messages(3) : nil), "\(kept) kept, \(underway) under way")
                #expect(
                    machine(keeping: kept, byBytes).exceededCap(
                        bytes: 100, isLiveOnly: false, pending: pending(underway), policy: byBytes)
                        == (total >= 3 ? .bytes(350) : nil), "\(kept) kept, \(underway) under way")
            }
        }
    }

    @Test func `The policy to drop refuses nothing, and unlimited caps never`() {
        let dropping = policy(.dropOldest, messages: 1, bytes: 1)
        #expect(
            machine(keeping: 1, dropping).exceededCap(
                bytes: 100, isLiveOnly: false, pending: pending(5), policy: dropping) == nil)
        let open = policy(.refuse)
        #expect(
            machine(keeping: 3, open).exceededCap(
                bytes: 65_536, isLiveOnly: false, pending: pending(5), policy: open) == nil)
    }

    @Test func `A single message of any size is taken by a device that keeps none`() {
        let small = policy(.refuse, bytes: 10)
        #expect(
            machine(keeping: 0, small).exceededCap(
                bytes: 65_536, isLiveOnly: false, pending: pending(0), policy: small) == nil)
    }

    @Test func `A live-only message is refused where it would be kept, and nowhere else`() {
        let full = policy(.refuse, messages: 2)
        #expect(
            machine(keeping: 2, full).exceededCap(
                bytes: 100, isLiveOnly: true, pending: pending(0), policy: full) == nil)
        #expect(
            machine(keeping: 2, full, attached: true).exceededCap(
                bytes: 100, isLiveOnly: true, pending: pending(0), policy: full) == .messages(2))
    }

    @Test func `Pending messages never count below nothing`() {
        var pending = PendingMessages()
        pending.remove(bytes: 100)
        #expect(pending == PendingMessages())
        pending.add(bytes: 100)
        pending.remove(bytes: 500)
        #expect(pending == PendingMessages())
    }
}
