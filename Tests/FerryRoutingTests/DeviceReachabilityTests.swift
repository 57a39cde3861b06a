private import FerryCore
private import FerryRouting
private import FerryTestSupport
internal import Testing

/// All that can happen to a device under small bounds, against the promises of `DeviceStateMachine`.
struct DeviceReachabilityTests {
    static let scenarios = [
        DeviceScenario(
            description: "stubs", sorts: [.long, .ownAlert], messages: 2, cap: 3, ends: [.background, .lost],
            changesToken: true, waits: 1, acknowledges: false),
        DeviceScenario(
            description: "late accepts", sorts: [.long], messages: 2, cap: 3, ends: [.background], changesToken: true,
            waits: 1, hasLateAccepts: true, acknowledges: false),
        DeviceScenario(
            description: "expiry and gaps", sorts: [.short, .long], messages: 3, cap: 3, ends: [.lost], hasToken: false,
            waits: 2),
        DeviceScenario(
            description: "overflow", sorts: [.long], messages: 4, cap: 2, windows: [1, 2], ends: [.lost],
            hasToken: false, waits: 0),
        DeviceScenario(
            description: "takeover and live-only", sorts: [.long, .liveOnly, .liveOnlyWithAlert], messages: 2, cap: 3,
            sessions: [1, 2], waits: 1),
        DeviceScenario(
            description: "background", sorts: [.short], messages: 3, cap: 2, ends: [.background, .bye], hasToken: false,
            waits: 1),
        DeviceScenario(
            description: "bytes", sorts: [.long], messages: 4, cap: 9, byteCap: 250, windows: [3], windowBytes: 150,
            ends: [.lost], hasToken: false, waits: 0),
        DeviceScenario(
            description: "refused at the cap", sorts: [.long, .liveOnly], messages: 4, cap: 2, capPolicy: .refuse,
            ends: [.lost], hasToken: false, waits: 0),
        DeviceScenario(
            description: "refused at the cap of bytes", sorts: [.short], messages: 4, cap: 9, byteCap: 250,
            capPolicy: .refuse, ends: [.background], hasToken: false, waits: 1),
        DeviceScenario(
            description: "broadcasts", sorts: [.long, .shared], messages: 4, cap: 2, ends: [.lost], hasToken: false,
            waits: 0),
        DeviceScenario(
            description: "broadcasts between what expires", sorts: [.short, .shared, .sharedLiveOnly], messages: 3,
            cap: 3, ends: [.background, .lost], hasToken: false, waits: 1),
        DeviceScenario(
            description: "broadcasts and stubs", sorts: [.long, .ownAlert, .shared], messages: 2, cap: 3,
            ends: [.bye, .lost], changesToken: true, waits: 1, acknowledges: false),
        DeviceScenario(
            description: "broadcasts that wake", sorts: [.long, .shared], messages: 2, cap: 3,
            ends: [.background, .lost],
            changesToken: true, waits: 1, acknowledges: false, wakes: true),
        DeviceScenario(
            description: "broadcasts that wake, and are taken back", sorts: [.shared], messages: 3, cap: 3,
            ends: [.bye],
            waits: 1, takesBack: true, wakes: true),
        DeviceScenario(
            description: "taken back", sorts: [.short, .shared], messages: 3, cap: 2, ends: [.background, .lost],
            hasToken: false, waits: 1, takesBack: true),
        DeviceScenario(
            description: "taken back with their stubs", sorts: [.long, .ownAlert, .liveOnly], messages: 2, cap: 3,
            ends: [.bye], waits: 1, acknowledges: false, takesBack: true),
        DeviceScenario(
            description: "handed to the wake-up channel", sorts: [.wakeOnly, .wakeFirst, .long], messages: 3, cap: 2,
            ends: [.lost], waits: 1),
        DeviceScenario(
            description: "handed over between what expires", sorts: [.short, .wakeFirst, .wakeFirstLiveOnly],
            messages: 3, cap: 3, ends: [.background, .bye], changesToken: true, waits: 2),
    ]

    @Test(arguments: scenarios)
    func `Every reachable state of a device keeps every promise`(_ scenario: DeviceScenario) {
        let search = ReachabilitySearch<DeviceWorld, DeviceWorld.Step>(
            events: { scenario.steps($0) }, step: { (world, step) throws(Violation) in try world.perform(step) })
        let report = search.run(from: scenario.world, limit: Effort.scaled(5_000))
        #expect(report.violation == nil, "\(report)")
        #expect(report.states > 500)
    }
}
