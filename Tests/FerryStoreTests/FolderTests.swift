internal import FerryCore
internal import FerryStore
internal import Foundation
internal import Testing

/// The data folder as an operator meets it.
struct FolderTests {
    private func failure(_ fixture: Fixture) -> String {
        do {
            _ = try fixture.open()
            return "opened"
        } catch {
            return "\(error)"
        }
    }

    @Test func `A second gateway is refused with the folder and the process that holds it`() throws {
        let fixture = Fixture(.files)
        let first = try fixture.open()
        let sentence = failure(fixture)
        #expect(sentence.contains(fixture.path) && sentence.contains("\(getpid())"), "\(sentence)")
        first.close()
        _ = try fixture.open()
    }

    @Test func `A folder keeps its epoch, and two folders have two`() throws {
        let fixture = Fixture(.files)
        let epoch = try { try fixture.open().takeRecovery().epoch }()
        #expect(epoch != .none)
        #expect(try fixture.open().takeRecovery().epoch == epoch)
        #expect(try Fixture(.files).open().takeRecovery().epoch != epoch)
    }

    @Test func `Folder and files are for their owner alone`() throws {
        let fixture = Fixture(.files)
        _ = try fixture.open()
        func mode(_ path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        #expect(try mode(fixture.path) == 0o700)
        for name in ["FORMAT", "LOCK", "journal-0000000001.seg"] {
            #expect(try mode("\(fixture.path)/\(name)") == 0o600, "\(name)")
        }
    }

    @Test(arguments: Backing.allCases)
    func `A folder of a newer format version is refused by both versions`(backing: Backing) throws {
        let fixture = Fixture(backing)
        try { _ = try fixture.open() }()
        try edit(fixture) { $0.replacingOccurrences(of: "version 1", with: "version 2") }
        let sentence = failure(fixture)
        #expect(sentence.contains("format version 2") && sentence.contains("knows version 1"), "\(sentence)")
    }

    @Test func `A changed byte of FORMAT is refused`() throws {
        let fixture = Fixture()
        _ = try fixture.open()
        for index in fixture.disk.contents("FORMAT").indices {
            let copy = fixture.copy()
            copy.disk.tamper("FORMAT") { $0[index] ^= 1 }
            let sentence = failure(copy)
            #expect(sentence.contains("FORMAT") || sentence.contains("version"), "byte \(index): \(sentence)")
        }
    }

    private func edit(_ fixture: Fixture, _ change: (String) -> String) throws {
        switch fixture.backing {
        case .memory:
            fixture.disk.tamper("FORMAT") { $0 = Array(change(String(decoding: $0, as: UTF8.self)).utf8) }
        case .files:
            let path = "\(fixture.path)/FORMAT"
            try Data(change(String(contentsOfFile: path, encoding: .utf8)).utf8).write(to: URL(fileURLWithPath: path))
        }
    }

    @Test func `A folder of something else is left alone`() throws {
        let fixture = Fixture(.files)
        try FileManager.default.createDirectory(atPath: fixture.path, withIntermediateDirectories: false)
        try Data().write(to: URL(fileURLWithPath: "\(fixture.path)/thesis.txt"))
        let sentence = failure(fixture)
        #expect(sentence.contains("thesis.txt") && sentence.contains("no data folder"), "\(sentence)")
    }

    @Test func `A folder without FORMAT but with records is refused, not made anew`() throws {
        let fixture = Fixture()
        let store = try fixture.open()
        _ = store.takeRecovery()
        let shard = ModelShard(store)
        try store.start(sinks: [shard.sink])
        shard.append(Sample.records)
        settle(store, shard)
        fixture.disk.remove("FORMAT")
        #expect(failure(fixture).contains("lacks its file FORMAT"))
    }

    @Test func `A power cut while a folder is made leaves one that opens`() throws {
        for fate in [MemoryDisk.Fate.lost, .kept] + (1...20).map({ .torn($0) }) {
            for syncs in 0..<4 {
                let fixture = Fixture()
                var faults = MemoryDisk.Faults()
                faults.syncsBefore = syncs
                faults.syncs = 1
                fixture.disk.inject(faults)
                _ = try? fixture.open()
                fixture.crash(fate)
                #expect(throws: Never.self) { try fixture.open() }
            }
        }
    }

    @Test func `A power cut while a folder without records is opened again leaves one that opens`() throws {
        for fate in [MemoryDisk.Fate.lost, .kept] + (1...20).map({ .torn($0) }) {
            for syncs in 0..<2 {
                let fixture = Fixture()
                try { _ = try fixture.open() }()
                var faults = MemoryDisk.Faults()
                faults.syncsBefore = syncs
                faults.syncs = 1
                fixture.disk.inject(faults)
                _ = try? fixture.open()
                fixture.crash(fate)
                #expect(throws: Never.self, "\(fate), after \(syncs) syncs") { try fixture.open() }
            }
        }
    }

    @Test func `A folder that cannot be used says which and why`() throws {
        let fixture = Fixture(.files)
        try Data().write(to: URL(fileURLWithPath: fixture.path))
        let sentence = failure(fixture)
        #expect(sentence.contains("Cannot use the data folder \(fixture.path)"), "\(sentence)")
        #expect(sentence.contains("Not a directory"), "\(sentence)")
        fixture.options.folder = fixture.path + "/missing/deeper"
        #expect(failure(fixture).contains(fixture.options.folder))
    }

    @Test(.enabled(if: geteuid() != 0))
    func `A folder without write permission says so`() throws {
        let fixture = Fixture(.files)
        try FileManager.default.createDirectory(
            atPath: fixture.path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o500])
        #expect(failure(fixture).contains("must be able to write there"))
    }

    @Test func `A read-only folder says so`() throws {
        // The kernel's own file system takes no new files from anybody.
        let fixture = Fixture(.files)
        fixture.options.folder = "/sys/kernel"
        let sentence = failure(fixture)
        #expect(sentence.contains("must be able to write there"), "\(sentence)")
    }
}
