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

        mutating func attach(_ session: UInt64 = 1, lastSeq: UInt64? = nil, continues: Bool = false) {
            tell(
                .attached(
                    SessionID(rawValue: session), lastSeq: lastSeq.map(Seq.init), window: 8, windowBytes: 1_000,
                    continues: continues))
        }

        mutating func transmit() {
            switch machine.next(now: now) {
            case .message(let message)?: tell(.sent(message.seq))
            case .gap(let gap)?: tell(.sent(gap.upTo))
            case nil: Issue.record("nothing to send")
            }
        }

        var stubs: [StubPlan] { actions.compactMap { if case .requestStub(let plan) = $0 { plan } else { nil } } }
        var ends: [DeliveryState] {
            actions.compactMap { if case .end(_, let reason) = $0 { reason.state } else { nil } }
        }
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

    /// A push crossed the words background and foreground; its ack, of a number that the new session had not sent again yet,
    /// closed a client that did nothing wrong.
    @Test func `An ack may name what an earlier session of the same connection was sent`() {
        var device = Device()
        device.attach()
        device.accept(1)
        device.transmit()
        device.tell(.detached(SessionID(rawValue: 1), .background))
        device.attach(2, continues: true)
        device.tell(.acknowledged(Seq(1)))
        #expect(device.ends == [.delivered])
        device.accept(2)
        device.transmit()
        device.attach(3)
        device.tell(.acknowledged(Seq(2)))
        #expect(device.actions.contains(.refuseAck))
    }

    /// A message behind a drop was sent and acknowledged before the drop was on disk; after a crash the ack covered the dropped
    /// message, which counted as delivered, and nobody was told of it.
    @Test func `Nothing behind a drop is sent before the drop is on disk`() {
        var device = Device()
        device.accept(1, .short)
        device.accept(2)
        device.now = device.now + .seconds(2)
        device.attach()
        #expect(device.ends == [.expired])
        #expect(device.machine.next(now: device.now) == nil)
        device.tell(.dropSynced)
        guard case .gap(let gap)? = device.machine.next(now: device.now) else {
            Issue.record("the gap is next")
            return
        }
        #expect(gap.upTo == Seq(1))
    }

    /// A gap on disk grew by a drop whose record the disk refused, and so moved behind a message. That message was sent, and
    /// its ack covered the gap as it was on disk: after a crash its drops were told to nobody.
    @Test func `Nothing passes a gap that grows before it has grown on disk`() {
        var device = Device()
        device.accept(1, .short)
        device.accept(2)
        device.now = device.now + .seconds(2)
        device.tell(.timePassed)
        device.tell(.dropSynced)
        device.accept(3, .short)
        device.now = device.now + .seconds(2)
        device.attach()
        #expect(device.machine.gap == Gap(upTo: Seq(3), expired: 2))
        #expect(device.machine.next(now: device.now) == nil)
        device.tell(.dropSynced)
        #expect(device.machine.next(now: device.now) != nil)
    }

    /// A message that the store could not read held up all behind it.
    @Test func `A message that cannot be read fails alone`() {
        var device = Device()
        device.accept(1)
        device.accept(2)
        device.attach()
        device.tell(.unreadable(Seq(1)))
        #expect(device.ends == [.failed])
        device.transmit()
        #expect(device.machine.window.sent == Seq(2))
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

    /// A timer may be late: an expired message at the head of the queue was still sent.
    @Test func `An expired message is not sent, however late the timer is`() {
        var device = Device()
        device.attach()
        device.accept(1, .short)
        device.now = device.now + .seconds(1)
        #expect(device.machine.next(now: device.now) == nil)
        device.tell(.timePassed)
        #expect(device.ends == [.expired])
    }

    /// A device that logged in anew over a session not yet given up had its live-only message, and it counted as expired.
    @Test func `What the app has of the older session is delivered, live-only or not`() {
        var device = Device(hasToken: true)
        device.attach(1)
        device.accept(1, .liveOnlyWithAlert)
        device.transmit()
        device.attach(2, lastSeq: 1)
        #expect(device.ends == [.delivered])
        #expect(device.stubs.isEmpty)
    }

    /// After a restart a live-only message that the journal still held stayed for ever, or went to the next session.
    @Test func `A live-only message does not outlive a restart`() {
        for comesBack in [true, false] {
            var device = Device(hasToken: true)
            device.machine.restore(
                DeviceScenario.Sort.liveOnly.message(seq: 1, now: device.now, bytes: 1, stub: .notWanted))
            device.machine.finishRestoring(now: device.now, wait: .seconds(5))
            #expect(device.machine.deadline.map { $0 <= device.now } == true)
            if comesBack { device.attach() } else { device.tell(.timePassed) }
            #expect(device.ends == [.expired])
            #expect(device.machine.log.isEmpty)
        }
    }

    /// When more was dropped behind a gap that was on its way, the next gap counted the first one's messages again, and
    /// the first left the window although the device had it unacknowledged.
    @Test func `A drop is told once to a session`() {
        var device = Device()
        for seq in 1...3 as ClosedRange<UInt64> { device.accept(seq) }
        device.attach()
        device.tell(.dropSynced)
        #expect(device.machine.next(now: device.now) == .gap(Gap(upTo: Seq(1), overflowed: 1)))
        device.transmit()
        device.accept(4)
        device.tell(.dropSynced)
        #expect(device.machine.next(now: device.now) == .gap(Gap(upTo: Seq(2), overflowed: 1)))
        device.transmit()
        #expect(device.machine.window.inFlight == 2)
        #expect(device.machine.gap == Gap(upTo: Seq(2), overflowed: 2))
        device.tell(.acknowledged(Seq(1)))
        #expect(device.machine.gap == Gap(upTo: Seq(2), overflowed: 1))
        #expect(device.machine.window.inFlight == 1)
        device.tell(.acknowledged(Seq(2)))
        #expect(device.machine.gap == nil)
        #expect(device.machine.window.inFlight == 0)
    }

    @Test func `Gaps whose session was lost are told again, each in its place`() {
        var device = Device()
        for seq in 1...3 as ClosedRange<UInt64> { device.accept(seq) }
        device.attach()
        device.tell(.dropSynced)
        device.transmit()
        device.accept(4)
        device.tell(.dropSynced)
        device.transmit()
        device.tell(.detached(SessionID(rawValue: 1), .lost))
        device.attach(2, lastSeq: 1)
        #expect(device.machine.next(now: device.now) == .gap(Gap(upTo: Seq(2), overflowed: 1)))
    }

    /// A device in the background whose last message had expired lost its machine to the idle sweep; its late ack was then
    /// taken for a lie and cost it the connection.
    @Test func `A late ack from the background is no lie, even when the machine was made anew`() {
        var device = Device()
        device.attach()
        device.accept(1, .liveOnly)
        device.transmit()
        device.tell(.detached(SessionID(rawValue: 1), .background))
        #expect(device.machine.isAtRest)
        device.machine = DeviceStateMachine(acknowledged: .zero, gap: nil, hasToken: false)
        device.tell(.acknowledged(Seq(1)))
        #expect(device.actions.isEmpty)
        device.attach(1)
        device.tell(.acknowledged(Seq(1)))
        #expect(device.actions == [.refuseAck])
    }

    /// The device was offline when its message was accepted and came back before the record was on disk: the backend was
    /// told that it is offline, and the device that it never was.
    @Test func `a device that came back during the sync is told that it was away`() {
        var device = Device()
        device.attach()
        let message = DeviceScenario.Sort.long.message(seq: 1, now: device.now, bytes: 10, stub: .noToken)
        device.tell(
            .messageSynced(
                KeptMessage(
                    seq: message.seq, expiresAt: message.expiresAt, location: message.location,
                    payloadBytes: message.payloadBytes, isLiveOnly: false, hasOwnAlert: false, wasOffline: true,
                    stub: message.stub)))
        #expect(device.machine.log.first?.wasOffline == true)
        device.accept(2)
        #expect(device.machine.log.last?.wasOffline == false)
    }
}
