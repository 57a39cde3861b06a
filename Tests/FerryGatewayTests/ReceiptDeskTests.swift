private import FerryCore
private import FerryReceipts
internal import Testing

@testable private import FerryGateway

struct ReceiptDeskTests {
    private static func desk() -> ReceiptDesk {
        ReceiptDesk([ReceiptTarget(url: "http://backend", tellsPresence: false)], isActive: true)
    }

    private static let cid = CID(Identifier128(high: 1, low: 2))
    private static let other = CID(Identifier128(high: 1, low: 3))

    private static func row(_ cid: CID, _ reason: EndReason) -> [UInt8] {
        let name = MessageName(
            taskID: TaskID(Identifier128(high: 7, low: 1), monthDay: 1231, kind: .single),
            messageID: MessageID(Identifier128(high: 8, low: 1)))
        return Receipt.ended(EndedMessage(cid: cid, name: name, reason: reason, at: .distantPast)).bytes
    }

    @Test func `what a removal tells of is not told again at its end, and what came meanwhile is`() {
        var desk = Self.desk()
        #expect(!desk.hasTold(Self.cid, Seq(1)))
        desk.beginRemoval(of: Self.cid, telling: [Seq(1)])
        #expect(desk.hasTold(Self.cid, Seq(1)))
        #expect(!desk.hasTold(Self.cid, Seq(2)))
        #expect(!desk.hasTold(Self.other, Seq(1)))
        desk.endRemoval(of: Self.cid)
        #expect(!desk.hasTold(Self.cid, Seq(1)))
    }

    @Test func `receipts of a removal that the disk refused are void, and no others`() {
        var desk = Self.desk()
        let removed = Self.row(Self.cid, .deviceRemoved)
        #expect(!desk.isVoid(removed))
        desk.beginRemoval(of: Self.cid, telling: [Seq(1)])
        desk.removalRefused(of: Self.cid)
        #expect(desk.isVoid(removed))
        #expect(!desk.isVoid(Self.row(Self.cid, .ttlRanOut)))
        #expect(!desk.isVoid(Self.row(Self.other, .deviceRemoved)))
        #expect(!desk.hasTold(Self.cid, Seq(1)))
    }

    @Test func `a removal that begins anew is told, and one that never began is not void`() {
        var desk = Self.desk()
        desk.removalRefused(of: Self.other)
        #expect(!desk.isVoid(Self.row(Self.other, .deviceRemoved)))
        desk.beginRemoval(of: Self.cid, telling: [])
        desk.removalRefused(of: Self.cid)
        desk.beginRemoval(of: Self.cid, telling: [])
        #expect(!desk.isVoid(Self.row(Self.cid, .deviceRemoved)))
    }

    @Test func `what the disk refuses waits up to a bound, the newest of it, and what is beyond is counted`() throws {
        var desk = Self.desk()
        let lane = ReceiptLaneName(app: try #require(AppID("shop")), partition: Partition(index: 0))
        let rows = (0..<40_000).map { [UInt8($0 & 0xff)] }
        let lost = [rows, rows, [[1]]].map { desk.keepForLater($0, of: lane) }
        #expect(lost == [0, 80_000 - 65_536, 1])
        let again = desk.takeAgain()
        #expect(again.map(\.rows.count) == [40_000, 25_536] && again.last?.rows.last == rows.last)
        #expect(desk.again.isEmpty)
        let lostThen = desk.keepForLater(rows, of: lane)
        #expect(lostThen == 0)
    }

    @Test func `a callback that all messages of a task share is not counted for each`() {
        var desk = Self.desk()
        let name = MessageName(
            taskID: TaskID(Identifier128(high: 7, low: 1), monthDay: 1231, kind: .list),
            messageID: MessageID(Identifier128(high: 8, low: 1)), callback: [UInt8](repeating: 7, count: 500))
        for seq in 1...10 as ClosedRange<UInt64> {
            desk.name(ReceiptDesk.Key(cid: Self.cid, seq: Seq(seq)), name, isShared: true)
        }
        #expect(desk.nameBytes < 500 * 4 && desk.nameCount == 10)
        desk.name(ReceiptDesk.Key(cid: Self.cid, seq: Seq(1)), name)
        for seq in 1...10 as ClosedRange<UInt64> {
            let taken = desk.takeName(ReceiptDesk.Key(cid: Self.cid, seq: Seq(seq)))
            #expect(taken == name)
        }
        #expect(desk.nameBytes == 0)
    }
}
