private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// A data folder that is not as the gateway left it: it does not start, says which file is at fault and what to do, and
/// changes nothing.
@Suite struct DamagedFolderTests {
    /// A folder with messages in journal and tables, of a gateway that has stopped.
    private func used() async throws -> (World, TestIdentity, Int) {
        let world = try await World(shards: 2, ["segmentBytes": 1 << 17, "keptSegments": 1])
        let device = try await RawDevice(world).register()
        let count = 400
        let payload = String(repeating: "x", count: 1_000)
        try await Backend(world).push(device.cid, all: (0..<count).map { "\($0) \(payload)" })
        let deadline = ContinuousClock.now + patience
        while try world.segments() > 2 {
            guard ContinuousClock.now < deadline else { throw Unexpected("segments stay") }
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(try await world.stop().status == 0)
        return (world, device, count)
    }

    private func change(_ path: String, _ change: (inout [UInt8]) -> Void) throws {
        var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        change(&bytes)
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    private func files(_ world: World, _ folder: String = "", with suffix: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: world.data + folder).filter {
            $0.hasSuffix(suffix) || $0.hasPrefix(suffix)
        }
        .sorted().map { world.data + folder + "/" + $0 }
    }

    /// Starts it, expects that it does not come up, and that it says all of `words` in few lines.
    private func expectRefusal(_ world: World, _ words: [String], _ options: [String] = []) async throws {
        let refused = try await Child.run(
            world.arguments + options + ["--device-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"])
        #expect(refused.status == 1)
        #expect(refused.lines.isEmpty)
        let said = refused.errors.split(separator: "\n").filter { !$0.contains(" info ") }
        #expect(said.count == 1, "\(refused.errors)")
        for word in words { #expect(refused.errors.contains(word), "\(word) is not in \(refused.errors)") }
    }

    @Test func `damage in the middle of the journal is named with its file and a way out`() async throws {
        let (world, device, _) = try await used()
        let segment = try #require(try files(world, with: ".seg").first)
        let whole = try Data(contentsOf: URL(fileURLWithPath: segment))
        try change(segment) { $0[20_000] ^= 0xff }
        try await expectRefusal(world, [segment, "damaged at byte", "backup", "--accept-loss"])
        try whole.write(to: URL(fileURLWithPath: segment))
        try await world.start()
        #expect(try await RawDevice(world).login(device).keptMessages == 400)
    }

    @Test func `a segment that is missing is named`() async throws {
        let (world, _, _) = try await used()
        let segment = try #require(try files(world, with: ".seg").first)
        try FileManager.default.removeItem(atPath: segment)
        try await expectRefusal(world, [segment, "missing", "backup"])
    }

    @Test func `FORMAT of a newer version, damaged or missing is refused in three ways`() async throws {
        let (world, _, _) = try await used()
        let format = world.data + "/FORMAT"
        let whole = try String(contentsOfFile: format, encoding: .utf8)
        try whole.replacingOccurrences(of: "version 1", with: "version 2")
            .write(toFile: format, atomically: true, encoding: .utf8)
        try await expectRefusal(world, [world.data, "version 2", "version 1", "later one"])
        try whole.replacingOccurrences(of: "partitions", with: "partition")
            .write(toFile: format, atomically: true, encoding: .utf8)
        try await expectRefusal(world, ["FORMAT", world.data, "damaged", "backup"])
        try FileManager.default.removeItem(atPath: format)
        try await expectRefusal(world, ["FORMAT", world.data, "lacks", "backup"])
        try whole.write(toFile: format, atomically: true, encoding: .utf8)
        try await world.start()
    }

    @Test func `the tables' files, damaged or missing, are named`() async throws {
        let (world, device, count) = try await used()
        let current = world.data + "/tables/CURRENT"
        let manifest = try #require(try files(world, "/tables", with: "MANIFEST").first)
        let table = try #require(try files(world, "/tables", with: ".sst").first)
        let changes: [(String, (inout [UInt8]) -> Void)] = [
            (current, { $0 = [] }), (current, { $0 = Array("MANIFEST-999999\n".utf8) }),
            (manifest, { for index in $0.indices { $0[index] ^= 0x55 } }),
            (manifest, { $0.removeLast($0.count / 2) }),
            (table, { $0.removeLast($0.count / 2) }),
            (table, { for index in $0.indices { $0[index] ^= 0x55 } }),
        ]
        for (path, damage) in changes {
            let whole = try Data(contentsOf: URL(fileURLWithPath: path))
            try change(path, damage)
            try await expectRefusal(world, [world.data + "/tables", "backup"])
            try whole.write(to: URL(fileURLWithPath: path))
        }
        for path in [current, table] {
            let whole = try Data(contentsOf: URL(fileURLWithPath: path))
            try FileManager.default.removeItem(atPath: path)
            try await expectRefusal(world, [world.data + "/tables", "backup"])
            try whole.write(to: URL(fileURLWithPath: path))
        }
        // None of the attempts made it worse.
        try await world.start()
        let back = try await RawDevice(world)
        try await back.login(device)
        #expect(try await back.take(count).map { $0.text.prefix { $0 != " " } } == (0..<count).map { "\($0)" })
    }

    @Test func `with accept-loss tables with a damaged block open with all that the others hold, for good`()
        async throws
    {
        let (world, device, count) = try await used()
        let tables = try files(world, "/tables", with: ".sst")
        let table = try #require(
            try tables.max {
                try Data(contentsOf: URL(fileURLWithPath: $0)).count < Data(contentsOf: URL(fileURLWithPath: $1)).count
            })
        try change(table) { bytes in
            for index in bytes.count / 2..<bytes.count / 2 + 16 { bytes[index] ^= 0xff }
        }
        try await expectRefusal(world, [world.data + "/tables", "--accept-loss"])
        try await world.start(["--accept-loss"])
        _ = try await world.log(with: ["1 places of the tables", world.data + "/tables.damaged"])
        let first = try await RawDevice(world)
        let kept = Int(try await first.login(device).keptMessages)
        #expect(kept > count / 2 && kept < count)
        try await first.sayBye()
        #expect(try await world.stop().status == 0)
        // It is a whole folder again.
        try await world.start()
        let back = try await RawDevice(world)
        #expect(try await back.login(device).keptMessages == UInt64(kept))
        let numbers = try await back.take(kept).compactMap { Int($0.text.prefix { $0 != " " }) }
        #expect(numbers == numbers.sorted() && Set(numbers).count == kept)
        try await Backend(world).push(device.cid, "more")
        #expect(try await back.take(1).map(\.text) == ["more"])
    }

    @Test func `an identity that is damaged or missing is refused, and none is made in its place`() async throws {
        let (world, _, _) = try await used()
        let identity = world.folder + "/identity"
        let whole = try Data(contentsOf: URL(fileURLWithPath: identity))
        try change(identity) { $0.removeLast(10) }
        try await expectRefusal(world, [identity])
        try FileManager.default.removeItem(atPath: identity)
        try await expectRefusal(world, [identity, world.data])
        #expect(!FileManager.default.fileExists(atPath: identity))
        try whole.write(to: URL(fileURLWithPath: identity))
        try await world.start()
    }

    @Test func `what is in LOCK does not matter, and who holds it does`() async throws {
        let (world, _, _) = try await used()
        try change(world.data + "/LOCK") { $0 = Array("rubbish that is longer than a number".utf8) }
        try await world.start()
        try await expectRefusal(world, [world.data, "another gateway"])
    }

    @Test(.enabled(if: SmallDisk.isPossible)) func `a read-only folder is refused with a sentence`() async throws {
        let disk = try SmallDisk(bytes: 64 << 20)
        let world = try await World(shards: 1, ["segmentBytes": 1 << 20], on: disk.path)
        let device = try await RawDevice(world).register()
        try await Backend(world).push(device.cid, "kept")
        #expect(try await world.stop().status == 0)
        try disk.setReadOnly(true)
        try await expectRefusal(world, [world.data, "Read-only file system", "must be able to write"])
        try disk.setReadOnly(false)
        try await world.start()
        #expect(try await RawDevice(world).login(device).keptMessages == 1)
    }

    @Test(.enabled(if: SmallDisk.isPossible)) func `a folder on a full disk opens, delivers, and takes no pushes`()
        async throws
    {
        let disk = try SmallDisk(bytes: 64 << 20)
        let world = try await World(shards: 1, ["segmentBytes": 1 << 20], on: disk.path)
        let device = try await RawDevice(world).register()
        try await Backend(world).push(device.cid, "kept")
        #expect(try await world.stop().status == 0)
        try disk.fill(leaving: 200_000)
        try await world.start()
        let back = try await RawDevice(world)
        try await back.login(device)
        #expect(try await back.take(1).map(\.text) == ["kept"])
        #expect(try await Backend(world).send(device.cid, "more").code == 30019)
    }
}
