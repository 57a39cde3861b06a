private import FerryCore
@testable internal import FerryGateway
private import FerryStore
internal import Testing

struct DeviceTableTests {
    private static let apps = ["one", "two"].compactMap { AppID($0) }

    private static func record(_ number: UInt64) -> DeviceRecord {
        var record = DeviceRecord(
            registration: DeviceRegistration(
                app: apps[Int(number % 2)], cid: CID(Identifier128(high: number &* 0x9e37_79b9_7f4a_7c15, low: number)),
                generation: UInt32(number % 7), at: Instant(milliseconds: Int64(number) * 1_001)))
        record.seenAt = Instant(milliseconds: Int64(number) * 2_003)
        record.acknowledged = Seq(number)
        record.stubSettledUpTo = Seq(number)
        if number % 3 == 0 {
            record.token = PushToken(environment: .sandbox, bytes: [1, UInt8(number % 256), 0])
        }
        if number % 5 == 0 { record.gap = Gap(upTo: Seq(number + 4), expired: 2) }
        return record
    }

    @Test func `What goes in comes out, over many chunks, places used twice and several apps`() {
        var table = DeviceTable(seed: Identifier128(high: 3, low: 4))
        var kept: [UInt64: DeviceRecord] = [:]
        for number in 0..<2_000 as Range<UInt64> {
            kept[number] = Self.record(number)
            _ = table.insert(Self.record(number))
            if number % 2 == 1, let gone = kept.keys.filter({ $0 * 7 % 11 < 6 }).min(), let record = kept[gone],
                let index = table.index(of: record.cid)
            {
                table.remove(index)
                kept[gone] = nil
                let isInUse = table.isInUse(index)
                #expect(!isInUse)
            }
        }
        let (count, end) = (table.count, table.endIndex)
        #expect(count == kept.count && end <= 1_200)
        for number in 0..<2_000 as Range<UInt64> {
            let found = table.index(of: Self.record(number).cid).map { table.record(of: $0) }
            #expect(found == kept[number])
        }
    }

    @Test func `A place that is used again has nothing of the device before`() {
        var table = DeviceTable(seed: Identifier128(high: 3, low: 4))
        let first = table.insert(Self.record(15))
        table[first].connection = 7
        table[first].isResting = true
        table[first].pendingChanges = 2
        table.remove(first)
        let second = table.insert(Self.record(16))
        #expect(second == first)
        let (connection, isResting, changes) = (
            table[second].connection, table[second].isResting, table[second].pendingChanges
        )
        let record = table.record(of: second)
        #expect(connection == nil && !isResting && changes == 0)
        #expect(record == Self.record(16))
    }
}
