internal import FerryIO
@testable internal import FerryStore
internal import Testing

/// The journal's next file, made before it is needed.
struct SpareFileTests {
    private func names(_ fixture: Fixture) throws -> [String] { try Directory.list(fixture.options.folder) }

    @Test func `A file that was prepared is whole, zero, and taken once`() throws {
        let fixture = Fixture(.files)
        _ = try Directory.make(fixture.options.folder)
        let spare = SpareFile(folder: fixture.options.folder)
        #expect(try spare.take(70_000, as: "a") == nil)
        spare.prepare(70_000)
        spare.finish()
        #expect(try names(fixture).contains(SpareFile.name))
        #expect(try spare.take(70_001, as: "a") == nil)
        let file = try #require(try spare.take(70_000, as: "a"))
        #expect(try file.size() == 70_000)
        #expect(try file.read(70_000, at: 0) == [UInt8](repeating: 0, count: 70_000))
        #expect(try names(fixture).filter { $0 == "a" || $0 == SpareFile.name } == ["a"])
        #expect(try spare.take(70_000, as: "b") == nil)
        spare.prepare(10)
        spare.finish()
        #expect(try spare.take(10, as: "b")?.size() == 10)
    }

    @Test func `What a killed process left of one is not taken`() throws {
        let fixture = Fixture(.files)
        do {
            let disk = try FileDisk(folder: fixture.options.folder)
            let file = try disk.create(SpareFile.name, bytes: 100)
            try file.write([1, 2, 3], at: 0)
        }
        let disk = try FileDisk(folder: fixture.options.folder)
        #expect(try !disk.list().contains(SpareFile.name))
        #expect(try disk.create("a", bytes: 100).read(100, at: 0) == [UInt8](repeating: 0, count: 100))
    }
}
