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
}
