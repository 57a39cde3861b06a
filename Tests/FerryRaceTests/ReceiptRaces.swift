internal import FerryCore
internal import FerryGateway
internal import FerryReceipts
internal import FerryStore
internal import FerryWire
internal import Testing

/// Receipts while the power goes, or the disk refuses: whoever was told that a message is accepted is told how it ended.
struct ReceiptRaces {
    private static let moments = 12

    private func erase(_ world: RaceWorld, _ device: RaceDevice, _ backend: RaceBackend) {
        let head =
            "DELETE /v1/\(world.app.text)/devices/\(device.cid) HTTP/1.1\r\nHost: gateway\r\n"
            + "token: \(world.apiToken)\r\nContent-Length: 0\r\n\r\n"
        backend.send(Array(head.utf8))
    }

    private func broadcast(_ world: RaceWorld, _ backend: RaceBackend) {
        let body =
            #"{"request_id":"request-for-everybody","audience":"all","push_message":{"transmission":"all"}}"#
        let head =
            "POST /v2/\(world.app.text)/push/all HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n"
        backend.send(Array((head + body).utf8))
    }

    /// What was kept before goes to the tables.
    private func fillJournal(_ world: RaceWorld) throws {
        let filler = try RaceDevice(world, number: 200, hasToken: false)
        let backend = try RaceBackend(world)
        for number in 0..<60 {
            backend.post(
                String(repeating: "x", count: 1_000) + String(number), to: filler, request: "filler-request-\(number)",
                ttl: nil)
            if number % 10 == 9 { world.settle() }
        }
        try #require(backend.answers().count == 60)
    }

    /// Lets everything end: the device comes back, as far as it is there, and takes what is kept for it.
    private func takeAll(_ world: RaceWorld, _ device: RaceDevice) throws {
        world.settle()
        let line = try device.greet()
        line.login()
        world.settle()
        for push in line.pushes() { line.ack(push.seq) }
        world.settle()
        line.close()
        world.settle()
        world.pass(1_000)
        world.settle()
        world.pass(1_000)
        world.settle()
    }

    private func expectAllTold(
        _ world: RaceWorld, _ tasks: [String], sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let told = Set(try #require(world.receipts).told.map(\.name.taskID.description))
        #expect(Set(tasks).subtracting(told) == [], sourceLocation: sourceLocation)
    }

    /// The messages are on their way to the disk when their device is erased: the record of its removal was written behind them,
    /// and their receipts only when that was on disk.
    @Test(arguments: 0..<moments, [true, false])
    func `A message under way when its device is erased is told of, whenever the power goes`(
        moment: Int, isErasedAtOnce: Bool
    ) throws {
        let world = try RaceWorld(wantsReceipts: true)
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let eraser = try RaceBackend(world)
        for text in ["a", "b"] { backend.post(text, to: device) }
        if !isErasedAtOnce { world.turn() }
        erase(world, device, eraser)
        var tasks: [String] = []
        for move in 0..<moment {
            if move % 2 == 0 { world.turn() } else { world.sync() }
            tasks += backend.answers().compactMap(\.task)
        }
        world.receipts?.open(false)
        try world.cutPower()
        world.receipts?.open(true)
        try takeAll(world, device)
        try expectAllTold(world, tasks)
        if moment == Self.moments - 1 { #expect(tasks.count == 2) }
    }

    /// It was given to the app just before the record of the removal was on disk.
    @Test(arguments: 0..<moments)
    func `A push to all that an erased device was sent is told of, whenever the power goes`(moment: Int) throws {
        let world = try RaceWorld(wantsReceipts: true)
        let device = try RaceDevice(world)
        let line = try device.attach()
        let backend = try RaceBackend(world)
        let eraser = try RaceBackend(world)
        broadcast(world, backend)
        world.turn()
        erase(world, device, eraser)
        var pushes: [PushFrame] = []
        for move in 0..<moment {
            if move % 2 == 0 { world.turn() } else { world.sync() }
            pushes += line.pushes()
        }
        world.receipts?.open(false)
        try world.cutPower()
        world.receipts?.open(true)
        try takeAll(world, device)
        try expectAllTold(world, pushes.map(\.taskID))
        if moment == Self.moments - 1 { #expect(pushes.count == 1) }
    }

    /// The batch with the first ack and its receipt is refused. A later ack, which covers the first, was on disk a second before
    /// the receipt of the first came there.
    /// And where the messages had rows in the tables, those went though the ack was refused.
    @Test(arguments: 0..<moments, [(2, false), (4, false), (2, true), (4, true), (200, true)])
    func `What an ack told of that the disk refused is told of with the next, whenever the power goes`(
        moment: Int, disk: (failures: Int, isInTables: Bool)
    ) throws {
        let world = try RaceWorld(wantsReceipts: true)
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        for text in ["a", "b"] { backend.post(text, to: device) }
        world.settle()
        let tasks = backend.answers().compactMap(\.task)
        if disk.isInTables { try fillJournal(world) }
        let line = try device.attach()
        world.settle()
        let pushes = line.pushes()
        try #require(tasks.count == 2 && pushes.count == 2)
        world.receipts?.open(false)
        world.hurt { $0.writes = disk.failures }
        line.ack(pushes[0].seq)
        world.turn()
        world.pass(2)
        world.turn()
        // It comes before the first is known to be refused.
        line.ack(pushes[1].seq)
        for move in 0..<moment {
            if move % 2 == 0 {
                world.pass(2)
                world.turn()
            } else {
                world.sync()
            }
        }
        world.hurt { _ in }
        try world.cutPower()
        world.receipts?.open(true)
        try takeAll(world, device)
        try expectAllTold(world, tasks)
    }
}
