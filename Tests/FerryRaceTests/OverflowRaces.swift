internal import FerryCore
internal import FerryGateway
internal import FerryRouting
internal import FerryStore
internal import Testing

/// A device that is away and full, to which messages come without a pause: for each of them an older one is dropped, so there
/// is always a drop on its way to the disk.
struct OverflowRaces {
    private static let payloadBytes = 3_000

    /// The device of one test.
    private struct Flood {
        let world: RaceWorld
        let device: RaceDevice
        let backend: RaceBackend
        private(set) var posts = 0
        private(set) var mostSegments = 0
        private let ttl: Int

        init(_ world: RaceWorld, ttl: Int = 86_400_000) throws {
            self.world = world
            self.ttl = ttl
            device = try RaceDevice(world, hasToken: false)
            backend = try RaceBackend(world)
        }

        var segments: Int { world.disk.list().filter { $0.hasPrefix("journal-") }.count }

        /// One message is taken, and what came before it is synced.
        mutating func turn() {
            posts += 1
            let text = String(posts) + String(repeating: "x", count: payloadBytes)
            backend.post(text, to: device, request: "flooding-request-\(posts)", ttl: ttl)
            world.turn()
        }

        mutating func sync() {
            world.sync()
            mostSegments = max(mostSegments, segments)
        }
    }

    private static func world(cap: Int) throws -> RaceWorld {
        try RaceWorld { $0.delivery.messageCap = Cap(cap) }
    }

    /// The retirement of a segment waited for a moment without a drop on its way, which did not come: the journal filled the
    /// disk, and pushes to all devices were refused.
    @Test(arguments: [2, 8, 20])
    func `Segments go though each message to a full device drops another`(cap: Int) throws {
        var flood = try Flood(Self.world(cap: cap))
        for _ in 0..<80 {
            flood.turn()
            flood.sync()
        }
        #expect(flood.mostSegments <= 4, "one written, one kept, one that goes and one meanwhile")
        try check(flood, accepted: 80, kept: cap)
    }

    /// The same where messages go by their ttl.
    @Test func `Segments go though in each turn a message of a device expires`() throws {
        var flood = try Flood(RaceWorld(), ttl: 10 * RaceWorld.tick)
        for _ in 0..<80 {
            flood.turn()
            flood.sync()
            flood.world.pass(RaceWorld.tick)
        }
        #expect(flood.mostSegments <= 4)
        flood.world.pass(11 * RaceWorld.tick)
        flood.world.settle()
        try flood.world.cutPower()
        let line = try flood.device.attach()
        flood.world.settle()
        #expect(line.stream() == [.gap(expired: 80, overflowed: 0)])
    }

    @Test(arguments: [2, 8, 20], 0..<24)
    func `Power lost at any moment of the overflow neither forgets nor repeats a drop`(cap: Int, moment: Int) throws {
        var flood = try Flood(Self.world(cap: cap))
        for _ in 0..<(cap + 26) {
            flood.turn()
            flood.sync()
        }
        for move in 0..<moment { if move % 2 == 0 { flood.turn() } else { flood.sync() } }
        try flood.world.cutPower()
        // The last message was taken and not synced.
        try check(flood, accepted: moment % 2 == 1 ? flood.posts - 1 : flood.posts, kept: cap)
    }

    /// Drops that wait for a retirement to learn what became of those before them, which the disk refuses.
    @Test(arguments: [2, 8, 20], 0..<24)
    func `A disk that refuses drops at any moment of the overflow neither forgets nor repeats one`(
        cap: Int, moment: Int
    ) throws {
        var flood = try Flood(Self.world(cap: cap))
        for move in 0..<(2 * (cap + 26)) {
            if move == 2 * (cap + 10) + moment { flood.world.hurt { $0.syncs = 1 } }
            if move % 2 == 0 { flood.turn() } else { flood.sync() }
        }
        flood.world.settle()
        let accepted = flood.backend.answers().filter { if case .offline = $0 { true } else { false } }.count
        flood.world.pass(1_008)
        flood.world.settle()
        try check(flood, accepted: accepted, kept: cap)
    }

    /// After a restart the device is told of all that were accepted: as messages, or as one gap.
    private func check(_ flood: Flood, accepted: Int, kept: Int) throws {
        let world = flood.world
        world.settle()
        try world.cutPower()
        world.pass(RaceWorld.grace)
        world.settle()
        let line = try flood.device.attach()
        world.settle()
        let found = line.stream()
        guard case .gap(expired: 0, let overflowed)? = found.first else {
            Issue.record("no gap first: \(found.first.map { "\($0)" } ?? "nothing")")
            return
        }
        let pushes = found.dropFirst().filter { if case .push = $0 { true } else { false } }
        #expect(pushes.count == found.count - 1, "one gap, and then messages alone")
        #expect(pushes.count == kept)
        #expect(overflowed == accepted - kept)
    }
}
