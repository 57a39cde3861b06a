internal import FerryIO
internal import FerryStore
internal import Foundation
internal import Testing

/// What the crash campaign is told, and so takes away or not.
struct WitnessedDiskTests {
    private func lines(_ path: String) throws -> [String] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    private func withNotes(_ body: (WitnessedDisk, MemoryDisk, String) throws -> Void) throws {
        let path = NSTemporaryDirectory() + "/ferry-witness-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: path) }
        let base = MemoryDisk()
        try body(WitnessedDisk(base, notes: path), base, path)
    }

    private func write(_ bytes: Int, at offset: Int, to file: any DiskFile) throws {
        try [UInt8](repeating: 1, count: bytes).withUnsafeBytes { try file.write($0, at: offset) }
    }

    @Test func `A write is noted by the sync after it and not before`() throws {
        try withNotes { disk, _, path in
            let file = try disk.create("a", bytes: 100)
            try write(10, at: 0, to: file)
            #expect(try lines(path) == ["S a 0"])
            try file.sync()
            try write(5, at: 10, to: file)
            #expect(try lines(path) == ["S a 0", "S a 10"])
            try file.sync()
            #expect(try lines(path).last == "S a 15")
        }
    }

    @Test func `A sync that fails is not noted`() throws {
        try withNotes { disk, base, path in
            let file = try disk.create("a", bytes: 100)
            try write(10, at: 0, to: file)
            var faults = MemoryDisk.Faults()
            faults.syncs = 1
            base.inject(faults)
            #expect(throws: SystemError.self) { try file.sync() }
            #expect(try lines(path) == ["S a 0"])
        }
    }

    @Test func `A file that is opened again is durable only when it is synced again`() throws {
        try withNotes { disk, _, path in
            try write(10, at: 0, to: try disk.create("a", bytes: 0))
            let file = try disk.open("a")
            #expect(try lines(path) == ["S a 0"])
            try file.sync()
            #expect(try lines(path).last == "S a 10")
        }
    }

    @Test func `An open file is noted under the name that it was given last`() throws {
        try withNotes { disk, _, path in
            let file = try disk.create("journal.new", bytes: 100)
            try disk.rename("journal.new", to: "journal-1")
            let other = try disk.create("journal.new", bytes: 100)
            try write(10, at: 0, to: file)
            try file.sync()
            #expect(try lines(path).last == "S journal-1 10")
            try write(20, at: 0, to: other)
            try other.sync()
            #expect(try lines(path).last == "S journal.new 20")
        }
    }

    @Test func `Names are noted by a sync of the folder, and a rename takes the length along`() throws {
        try withNotes { disk, _, path in
            _ = try disk.create("journal-2", bytes: 0)
            _ = try disk.create("FORMAT.new", bytes: 0)
            try disk.rename("FORMAT.new", to: "FORMAT")
            #expect(try lines(path).last == "M FORMAT.new FORMAT")
            try disk.syncDirectory()
            #expect(try lines(path).last == "N FORMAT journal-2")
            try disk.remove("journal-2")
            #expect(try lines(path).last == "N FORMAT journal-2")
        }
    }

    /// A folder's sync by the tables' thread, begun before a segment was made, was noted behind that of the journal's thread:
    /// the campaign took away a segment that was durable, and called it a loss.
    @Test func `A name that was noted is in every later note, whoever syncs the folder meanwhile`() throws {
        try withNotes { disk, _, path in
            let other = try OSThread(name: "tables") { for _ in 0..<400 { try? disk.syncDirectory() } }
            for number in 0..<200 {
                _ = try disk.create("journal-\(number)", bytes: 0)
                try disk.syncDirectory()
            }
            other.join()
            var known: Set<Substring> = []
            for line in try lines(path) where line.hasPrefix("N") {
                let names = Set(line.split(separator: " ").dropFirst())
                #expect(known.isSubset(of: names))
                known = names
            }
            #expect(known.count == 200)
        }
    }
}
