private import FerryCore
private import FerryRouting
internal import Testing

/// One story for each fault that a device's machine once had.
struct DeviceStoryTests {
    /// A machine, its clock and what it asked for.
    private struct Device {
        var machine: DeviceStateMachine
        var now = Instant(milliseconds: 1_000)
        var actions: [DeviceAction] = []

        init(hasToken: Bool = false) {
            machine = DeviceStateMachine(acknowledged: .zero, gap: nil, hasToken: hasToken)
        }

        mutating func tell(_ event: DeviceEvent) {
            actions = []
            var policy = DeliveryPolicy()
            policy.messageCap = 2
            machine.handle(event, now: now, policy: policy, actions: &actions)
        }

        mutating func accept(
            _ seq: UInt64, _ sort: DeviceScenario.Sort = .long, stub: KeptMessage.Stub = .none
        ) {
            tell(.messageSynced(sort.message(seq: seq, now: now, bytes: 10, stub: stub)))
        }

        mutating func attach(_ session: UInt64 = 1, lastSeq: UInt64? = nil) {
            tell(.attached(SessionID(rawValue: session), lastSeq: lastSeq.map(Seq.init), window: 8, windowBytes: 1_000))
        }

        mutating func transmit() {
            switch machine.next(now: now) {
            case .message(let message)?: tell(.sent(message.seq))
            case .gap(let gap)?: tell(.sent(gap.upTo))
            case nil: Issue.record("nothing to send")
            }
        }

        var stubs: [StubPlan] { actions.compactMap { if case .requestStub(let plan) = $0 { plan } else { nil } } }
        var ends: [DeliveryState] { actions.compactMap { if case .end(_, let state) = $0 { state } else { nil } } }
    }

    /// A token that came while messages waited woke nobody until the next message or disconnection.
    @Test func `A token that arrives wakes the owner for what is kept already`() {
        var device = Device()
        device.accept(1, stub: .noToken)
        #expect(device.actions.isEmpty)
        device.tell(.tokenChanged(hasToken: true))
        #expect(device.actions == [.recordStubsDue(upTo: Seq(1))])
        device.tell(.dueSynced)
        #expect(device.stubs.count == 1)
    }

    /// A token that went and came again while a stub was due left it unasked for.
    @Test func `A due stub outlives a change of the token`() {
        var device = Device(hasToken: true)
        device.attach()
        device.accept(1)
        device.tell(.detached(SessionID(rawValue: 1), .bye))
        device.tell(.tokenChanged(hasToken: false))
        device.tell(.dueSynced)
        #expect(device.stubs.isEmpty)
        device.tell(.tokenChanged(hasToken: true))
        #expect(device.stubs.count == 1)
    }

    /// A message accepted just before the token was saved came with the note that there is none, and nobody was woken.
    @Test func `A message that was accepted before the token gets its stub`() {
        var device = Device(hasToken: true)
        device.accept(1, stub: .noToken)
        #expect(device.actions == [.recordStubsDue(upTo: Seq(1))])
    }
}
