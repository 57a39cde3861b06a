private import FerryCore
private import FerryRouting
private import FerryTestSupport
internal import Testing

struct DeviceMatrixTests {
    private static let start = Instant(milliseconds: 10_000)
    private static let one = SessionID(rawValue: 1)
    private static let two = SessionID(rawValue: 2)

    private static var policy: DeliveryPolicy {
        var policy = DeliveryPolicy()
        policy.messageCap = 3
        return policy
    }

    private static func message(
        _ seq: UInt64, _ sort: DeviceScenario.Sort = .long, stub: KeptMessage.Stub = .none
    ) -> DeviceEvent {
        .messageSynced(sort.message(seq: seq, now: start, bytes: 100, stub: stub))
    }

    private static func attach(_ session: SessionID, lastSeq: UInt64? = nil) -> DeviceEvent {
        .attached(session, lastSeq: lastSeq.map(Seq.init), window: 2, windowBytes: 1_000, continues: false)
    }

    private static let standard = DeviceEvent.stubAnswered(
        .standard(upTo: Seq(2), badge: 1, expiresAt: start + .seconds(100)))
    private static let own = DeviceEvent.stubAnswered(
        .own(DeviceScenario.Sort.ownAlert.message(seq: 2, now: start, bytes: 100, stub: .due)))
    private static let sent2 = DeviceEvent.sent(Seq(2))

    private static let states: [(name: String, detail: String, hasToken: Bool, events: [DeviceEvent])] = [
        ("offline", "nothing kept", true, []),
        ("offline, due", "one message, and the record that its stub is due is not synced", true, [message(2)]),
        ("offline, asked", "its default stub is with APNs", true, [message(2, stub: .due)]),
        (
            "offline, cooling", "its stub was answered; another message waits", true,
            [message(2, stub: .due), standard, message(4, stub: .due)]
        ),
        ("offline, own alert asked", "a message with an alert of its own", true, [message(2, .ownAlert, stub: .due)]),
        ("offline, no token", "one message", false, [message(2)]),
        ("session", "nothing kept", true, [attach(one)]),
        ("session, in flight", "one sent, one not", true, [attach(one), message(2), sent2, message(4)]),
        (
            "session, window full", "two sent, one not", true,
            [attach(one), message(2), message(4), sent2, .sent(Seq(4)), message(6)]
        ),
        ("session, live only", "sent", true, [attach(one), message(2, .liveOnlyWithAlert), sent2]),
        (
            "session, gap untold", "its drop is not synced", true,
            [message(2), message(3), message(4), message(5), .dueSynced, .dueSynced, .dueSynced, attach(one)]
        ),
        (
            "session, gap in flight", "told, not acknowledged", true,
            [attach(one), message(1), message(2), message(4), message(5), .dropSynced, .sent(Seq(1))]
        ),
        (
            "grace", "one in flight when the session was lost", true,
            [attach(one), message(2), sent2, .detached(one, .lost)]
        ),
        (
            "background", "one in flight when the app went there", true,
            [attach(one), message(2), sent2, .detached(one, .background)]
        ),
        (
            "session, handed over", "by strategy 2; another message waits behind it", true,
            [attach(one), message(2, .wakeOnly), message(4)]
        ),
        ("offline, handed over", "by strategy 4", true, [message(2, .wakeFirst)]),
        ("offline, push to all", "its turn to wake has not come", true, [message(2, .shared)]),
        ("session, push to all", "sent", true, [attach(one), message(2, .shared), sent2]),
        (
            "session, push to all, turn over", "its owner is woken when it leaves", true,
            [attach(one), message(2, .shared), sent2, .wakeWanted(Seq(2))]
        ),
    ]

    private static let events: [(name: String, later: Duration, event: DeviceEvent)] = [
        ("message", .zero, message(20)),
        ("message, due", .zero, message(20, stub: .due)),
        ("message, own alert", .zero, message(20, .ownAlert)),
        ("message, live only", .zero, message(20, .liveOnly)),
        ("message, live only, alert", .zero, message(20, .liveOnlyWithAlert)),
        ("message, strategy 2", .zero, message(20, .wakeOnly)),
        ("message, strategy 4", .zero, message(20, .wakeFirst)),
        ("attached 1", .zero, attach(one)),
        ("attached 2, has 2", .zero, attach(two, lastSeq: 2)),
        ("detached 1 lost", .zero, .detached(one, .lost)),
        ("detached 1 background", .zero, .detached(one, .background)),
        ("detached 1 bye", .zero, .detached(one, .bye)),
        ("detached 2 lost", .zero, .detached(two, .lost)),
        ("acknowledged 0", .zero, .acknowledged(.zero)),
        ("acknowledged 2", .zero, .acknowledged(Seq(2))),
        ("acknowledged 99", .zero, .acknowledged(Seq(99))),
        ("sent 2", .zero, sent2),
        ("drop synced", .zero, .dropSynced),
        ("due synced", .zero, .dueSynced),
        ("default stub answered", .zero, standard),
        ("own stub answered", .zero, own),
        ("own stub withdrawn", .zero, .stubWithdrawn(Seq(2))),
        ("wake for 2", .zero, .wakeWanted(Seq(2))),
        ("2 taken back", .zero, .takenBack(Seq(2), .taskStopped)),
        ("hand-over of 2 accepted", .zero, .handOverAnswered(Seq(2), isAccepted: true)),
        ("hand-over of 2 refused", .zero, .handOverAnswered(Seq(2), isAccepted: false)),
        ("kind of 2 not taken", .zero, .kindNotTaken(Seq(2))),
        ("token", .zero, .tokenChanged(hasToken: true)),
        ("token gone", .zero, .tokenChanged(hasToken: false)),
        ("time", .zero, .timePassed),
        ("time, grace over", .seconds(5), .timePassed),
        ("time, hand-over too long", .seconds(10), .timePassed),
        ("time, ttl over", .seconds(100), .timePassed),
    ]

    @Test func `A device does in each state at each event what the table says`() {
        var table = MatrixTable(title: "A device (cap 3, grace and cool-down 5 s, ttl 100 s, window 2)")
        for state in Self.states {
            var machine = DeviceStateMachine(acknowledged: .zero, gap: nil, hasToken: state.hasToken)
            var actions: [DeviceAction] = []
            for event in state.events {
                machine.handle(event, now: Self.start, policy: Self.policy, actions: &actions)
            }
            table.begin(
                state: state.name, detail: "\(state.detail): \(DeviceNotation.text(machine, now: Self.start))")
            for event in Self.events {
                var next = machine
                let now = Self.start + event.later
                actions = []
                next.handle(event.event, now: now, policy: Self.policy, actions: &actions)
                table.add(
                    event: event.name, actions: actions.map { DeviceNotation.text($0, now: now) },
                    next: next == machine ? nil : DeviceNotation.text(next, now: now))
            }
        }
        #expect(table.differences(name: "device") == [])
    }
}
