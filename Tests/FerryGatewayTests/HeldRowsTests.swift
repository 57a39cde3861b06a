internal import FerryCore
internal import Testing

@testable private import FerryGateway

struct HeldRowsTests {
    private static func row(_ number: UInt64) -> HeldRows.Row {
        (CID(Identifier128(high: 0, low: number)), Seq(number))
    }

    private static func numbers(_ rows: [HeldRows.Row]) -> [UInt64] { rows.map(\.seq.rawValue) }

    @Test func `a row goes when the append that tells of its end is on disk, and not before`() {
        var rows = HeldRows()
        rows.hold([Self.row(1), Self.row(2)], until: 7)
        rows.hold([], until: 8)
        rows.hold([Self.row(3)], until: 9)
        let none = rows.take(before: 7)
        #expect(none.isEmpty && rows.count == 3 && !rows.mustWait)
        let first = rows.take(before: 9)
        #expect(Self.numbers(first) == [1, 2])
        let rest = rows.take(before: .max)
        #expect(Self.numbers(rest) == [3] && rows.count == 0)
    }

    @Test func `a row whose end the disk refused waits until that was told again, and is on disk`() {
        var rows = HeldRows()
        rows.hold([Self.row(1)], until: 7)
        rows.hold([Self.row(2)], until: 8)
        rows.hold([Self.row(3)], until: 9)
        rows.refused(from: 8)
        let first = rows.take(before: .max)
        #expect(Self.numbers(first) == [1] && rows.count == 2 && rows.mustWait)
        rows.hold([Self.row(4)], until: 10)
        let second = rows.take(before: .max)
        #expect(Self.numbers(second) == [4])
        rows.tellAgain()
        rows.hold([Self.row(5)], until: 11)
        #expect(!rows.mustWait)
        let none = rows.take(before: 11)
        #expect(none.isEmpty)
        rows.refused(from: 11)
        rows.tellAgain()
        rows.hold([], until: 12)
        let all = rows.take(before: .max)
        #expect(Self.numbers(all) == [2, 3, 5] && rows.count == 0)
    }
}
