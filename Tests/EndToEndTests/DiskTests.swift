private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// A disk that is full, cannot be written, or holds what was not written there. Devices stay, and nothing is lost in silence.
@Suite struct DiskTests {
    private func expectBusy(_ answer: HTTPAnswer) {
        #expect(answer.status == 403 && answer.code == 30019, "\(answer.text)")
    }

    /// Repeats a push until it is refused, then what `meanwhile` does, then until it is taken again.
    private func pushUntilRefused(_ backend: Backend, _ cid: CID, _ payload: String, isRandom: Bool = false)
        async throws -> Int
    {
        let deadline = ContinuousClock.now + patience
        var taken = 0
        while true {
            let text = isRandom ? Hexadecimal.encode(Cryptography.random(payload.utf8.count / 2)) : payload
            let answer = try await backend.send(cid, "\(taken) \(text)")
            if answer.code != 0 {
                expectBusy(answer)
                return taken
            }
            taken += 1
            guard ContinuousClock.now < deadline else { throw Unexpected("\(taken) pushes, and none refused") }
        }
    }

    private func pushWhenPossible(_ backend: Backend, _ cid: CID, _ text: String) async throws {
        let deadline = ContinuousClock.now + patience
        let requestID = Backend.freshRequestID()
        while true {
            let answer = try await backend.send(cid, text, requestID: requestID)
            if answer.code == 0 { return }
            expectBusy(answer)
            guard ContinuousClock.now < deadline else { throw Unexpected("never taken: \(answer.text)") }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private func expect(_ device: RawDevice, takes count: Int) async throws {
        #expect(try await device.take(count).map { $0.text.prefix { $0 != " " } } == (0..<count).map { "\($0)" })
    }

    @Test(.enabled(if: SmallDisk.isPossible), arguments: shardCounts)
    func `on a full disk pushes are refused, devices stay and get what is kept, and all is well when there is room`(
        shards: Int
    ) async throws {
        let disk = try SmallDisk(bytes: 64 << 20)
        let world = try await World(
            shards: shards,
            ["segmentBytes": 1 << 20, "keptSegments": 2, "messageCap": "unlimited", "byteCap": "unlimited"],
            on: disk.path)
        let online = try await RawDevice(world)
        let identity = try await online.register()
        let away = try await RawDevice(world).register()
        let backend = try await Backend(world)
        let payload = String(repeating: "x", count: 3_000)
        // Enough for some segments to retire.
        try await backend.push(away.cid, all: (0..<2_000).map { "\($0) \(payload)" })
        try await backend.push(identity.cid, "before")
        #expect(try await online.push().text == "before")
        // Nothing at all is left, in the middle of its life.
        try disk.fill(leaving: 0)
        _ = try await pushUntilRefused(backend, identity.cid, "x")
        _ = try await world.log(with: ["the disk is nearly full", "diskReserveBytes"])
        expectBusy(try await backend.send(away.cid, "x"))
        // The device is still there, and a device that comes is let in and gets everything.
        #expect(try await backend.isOnline(identity.cid))
        let back = try await RawDevice(world)
        #expect(try await back.login(away).keptMessages >= 2_000)
        try await expect(back, takes: 2_000)
        disk.empty()
        try await pushWhenPossible(backend, identity.cid, "after")
        _ = try await world.log(with: ["the disk has room again"])
        while try await online.take(1)[0].text != "after" {}
        // What it took in and what it was told meanwhile outlives it.
        try await back.sayBye()
        try await backend.push(away.cid, "0 last")
        try await world.restartAfterKill()
        let again = try await RawDevice(world)
        try await again.login(away)
        var texts: [String] = []
        while texts.last != "0 last" { texts.append(try await again.take(1)[0].text) }
        #expect(try await again.settled().isEmpty)
    }

    @Test(.enabled(if: SmallDisk.isPossible), arguments: shardCounts)
    func `a disk that fills up by itself refuses before it is full, with room for acks to the end`(
        shards: Int
    ) async throws {
        // Without a retirement, so that the tables do not take room for a moment and give it back.
        let disk = try SmallDisk(bytes: 48 << 20)
        let world = try await World(
            shards: shards,
            [
                "segmentBytes": 1 << 20, "keptSegments": 1_000, "messageCap": "unlimited", "byteCap": "unlimited",
                "diskReserveBytes": 16 << 20, "payloadCharacters": 65_536,
            ], on: disk.path)
        let away = try await RawDevice(world).register()
        let backend = try await Backend(world)
        let payload = String((0..<60_000).map { _ in "abcdefghijklmnop0123456789".randomElement() ?? "x" })
        let taken = try await pushUntilRefused(backend, away.cid, payload)
        #expect(taken > 100)
        #expect(disk.freeBytes > 14 << 20, "it stopped before the disk was full")
        let back = try await RawDevice(world)
        try await back.login(away)
        try await expect(back, takes: taken)
        try await back.sayBye()
        // Its acks were written: nothing comes twice.
        let log = try await world.log(with: ["the disk is nearly full"])
        #expect(!log.contains("store refused a batch"), "\(log)")
        #expect(try await world.stop().status == 0)
        try await world.start()
        let again = try await RawDevice(world)
        #expect(try await again.login(away).keptMessages == 0)
    }

    /// As on a file system that the kernel has made read-only: not even what was begun can be taken back, so nobody can say
    /// whether the push is on the disk. It has its answer as soon as somebody can.
    @Test(arguments: shardCounts)
    func `while nothing can be written devices stay and get what is kept, and a push waits for its answer`(
        shards: Int
    ) async throws {
        let world = try await World(shards: shards, ["segmentBytes": 1 << 20])
        let online = try await RawDevice(world)
        let identity = try await online.register()
        let away = try await RawDevice(world).register()
        let backend = try await Backend(world)
        for number in 0..<20 { try await backend.push(away.cid, "\(number)") }
        try await world.limitFileSize(to: 1)
        try await backend.socket.send(backend.pushRequest(try Backend.pushBody(identity.cid, "during")))
        _ = try await world.log(with: ["error store", "File too large"])
        #expect(try await online.settled().isEmpty)
        let back = try await RawDevice(world)
        #expect(try await back.login(away).keptMessages == 20)
        try await expect(back, takes: 20)
        #expect(try await Backend(world).isOnline(identity.cid))
        try await world.limitFileSize(to: nil)
        let answer = try await backend.answer()
        if answer.code != 0 { expectBusy(answer) }
        try await pushWhenPossible(backend, identity.cid, "after")
        let expected = (answer.code == 0 ? ["during"] : []) + ["after"]
        #expect(try await online.take(expected.count).map(\.text) == expected)
        #expect(try await online.settled().isEmpty)
        #expect(try await world.stop().status == 0)
        try await world.start()
        let again = try await RawDevice(world)
        #expect(try await again.login(identity).keptMessages == 0)
    }

    /// Segments and a segment's messages fit below the limit, and what the tables merge of several does not.
    @Test func `tables that could not be written for a while take over old segments afterwards`() async throws {
        let world = try await World(
            shards: 1,
            ["segmentBytes": 1 << 18, "keptSegments": 1, "messageCap": "unlimited", "byteCap": "unlimited"])
        let away = try await RawDevice(world).register()
        let backend = try await Backend(world)
        try await world.limitFileSize(to: 300_000)
        let texts = (0..<2_500).map { "\($0) \(Hexadecimal.encode(Cryptography.random(1_400)))" }
        try await backend.push(away.cid, all: texts)
        _ = try await world.log(with: ["error store", "File too large"])
        let before = try world.segments()
        #expect(before > 2)
        try await world.limitFileSize(to: nil)
        let deadline = ContinuousClock.now + patience
        while try world.segments() > 2 {
            guard ContinuousClock.now < deadline else {
                throw Unexpected("\(try world.segments()) segments stay: \(try await world.log(with: []))")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        try await world.restartAfterKill()
        let back = try await RawDevice(world)
        try await back.login(away)
        try await expect(back, takes: 2_500)
    }

    /// The last room goes to segments and to what of them goes to the tables; with some of these sizes, what those merge
    /// finds none.
    @Test(.enabled(if: SmallDisk.isPossible), arguments: Array(stride(from: 500_000, to: 720_000, by: 40_000)))
    func `tables that found no room go on when there is some`(room: Int) async throws {
        let disk = try SmallDisk(bytes: 64 << 20)
        let world = try await World(
            shards: 1,
            [
                "segmentBytes": 65_536, "keptSegments": 1, "messageCap": "unlimited", "byteCap": "unlimited",
                "diskReserveBytes": 1,
            ], on: disk.path)
        let away = try await RawDevice(world).register()
        let backend = try await Backend(world)
        try disk.fill(leaving: room)
        let taken = try await pushUntilRefused(
            backend, away.cid, Hexadecimal.encode(Cryptography.random(1_400)), isRandom: true)
        _ = try await world.log(with: ["error store"])
        disk.empty()
        try await pushWhenPossible(backend, away.cid, "\(taken) more")
        let deadline = ContinuousClock.now + patience
        while try world.segments() > 2 {
            guard ContinuousClock.now < deadline else {
                throw Unexpected("\(try world.segments()) segments stay: \(try await world.log(with: []))")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        try await world.restartAfterKill()
        let back = try await RawDevice(world)
        try await back.login(away)
        try await expect(back, takes: taken + 1)
    }
}
