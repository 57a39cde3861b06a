private import FerryCore
private import FerryRouting
internal import FerryTestSupport
internal import Testing

/// Long lives of one device, decided by a seed: more messages, wider windows and more sessions than a search can hold.
struct DeviceWalkTests {
    @Test(arguments: Effort.seeds(20))
    func `A device keeps every promise through a long life`(_ seed: UInt64) {
        var random = SplitMix(seed: seed)
        var scenario = DeviceScenario(
            description: "walk", sorts: DeviceScenario.Sort.allCases, messages: 60, cap: Int(seed % 5) + 2,
            byteCap: seed.isMultiple(of: 3) ? 350 : 10_000, sessions: [1, 2, 3], windows: [1, 2, 5],
            windowBytes: seed.isMultiple(of: 2) ? 250 : 10_000, hasToken: seed % 4 != 0, changesToken: true, waits: 400,
            hasLateAccepts: seed.isMultiple(of: 5), takesBack: true, wakes: true)
        if seed % 4 == 1 { scenario.capPolicy = .refuse }
        var world = scenario.world
        var path: [DeviceWorld.Step] = []
        for _ in 0..<500 {
            let steps = scenario.steps(world)
            // Kinds first, so that what has many forms does not crowd out the rest.
            let kinds = Dictionary(grouping: steps, by: Self.kind).sorted { $0.key < $1.key }
            guard let step = kinds.randomElement(using: &random)?.value.randomElement(using: &random) else { return }
            path.append(step)
            do {
                try world.perform(step)
            } catch {
                Issue.record("seed \(seed): \(error)\n after\n\(path.map { "  \($0)" }.joined(separator: "\n"))")
                return
            }
        }
        #expect(max(world.model.messages.count, world.takenCount) > 20)
    }

    private static func kind(_ step: DeviceWorld.Step) -> Int {
        switch step {
        case .transmit: 0
        case .wait: 1
        case .event(.messageSynced): 2
        case .event(.attached): 3
        case .event(.detached): 4
        case .event(.acknowledged): 5
        case .event(.sent): 6
        case .event(.dropSynced): 7
        case .event(.dueSynced): 8
        case .event(.stubAnswered): 9
        case .event(.tokenChanged): 10
        case .event(.timePassed): 11
        case .event(.unreadable): 12
        case .event(.stubWithdrawn): 13
        case .offer: 14
        case .syncTaken: 15
        case .loseTaken: 16
        case .event(.broadcastEnded): 17
        case .event(.broadcastMissed): 18
        case .event(.takenBack): 21
        case .event(.handOverAnswered): 19
        case .event(.kindNotTaken): 20
        case .event(.wakeWanted): 22
        }
    }
}
