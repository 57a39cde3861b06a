internal import FerryIO
@testable internal import FerryStore
internal import Foundation
internal import Testing

/// The engine takes a file of rows over by giving it a second name and removing the first. A process that died in between
/// found the first name again, and writing to it began by emptying the file that the engine had: what had been moved to the
/// tables was gone, and its segment too.
struct TakenOverFileTests {
    @Test func `A draft that a crash left beside its file in the tables takes nothing from them`() throws {
        let fixture = Fixture(.files)
        _ = try Directory.make(fixture.options.folder)
        let folder = "\(fixture.options.folder)/tables"
        let first = Self.rows(0..<1_000)
        do {
            let tables = try RocksTables(folder: folder, cacheBytes: 1 << 20, openFiles: 64)
            try tables.write(first)
        }
        let taken = try #require(try Directory.list(folder).filter { $0.hasSuffix(".sst") }.first)
        try FileManager.default.linkItem(atPath: "\(folder)/\(taken)", toPath: "\(folder)/rows.new")
        do {
            let tables = try RocksTables(folder: folder, cacheBytes: 1 << 20, openFiles: 64)
            try tables.write(Self.rows(1_000..<1_010))
        }
        let tables = try RocksTables(folder: folder, cacheBytes: 1 << 20, openFiles: 64)
        for number in 0..<1_010 {
            #expect(try tables.get(.requests, Self.key(number)) == [UInt8](repeating: 7, count: 100))
        }
    }

    private static func key(_ number: Int) -> [UInt8] {
        Array("key \(String(number, radix: 10).count)-\(number) of sixteen".utf8)
    }

    private static func rows(_ numbers: Range<Int>) -> TableWrite {
        var rows = TableWrite()
        for number in numbers { rows.put(.requests, key: key(number), value: [UInt8](repeating: 7, count: 100)) }
        return rows
    }
}
