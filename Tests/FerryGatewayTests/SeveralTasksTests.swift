internal import FerryCore
@testable internal import FerryGateway
internal import FerryStore
internal import Testing

struct SeveralTasksTests {
    private func message(_ number: UInt64) -> SeveralTasks.Message {
        SeveralTasks.Message(cid: CID(Identifier128(high: 7, low: number % 50)), seq: Seq(number))
    }

    @Test func `what is kept is found by its task, and what is not leaves as others come`() {
        var tasks = SeveralTasks()
        var kept: Set<SeveralTasks.Message> = []
        var all: [(task: Identifier128, message: SeveralTasks.Message)] = []
        for number in 1...20_000 as ClosedRange<UInt64> {
            let task = Identifier128(high: 1, low: number / 3)
            tasks.add(task, message(number)) { kept.contains($0) }
            kept.insert(message(number))
            all.append((task, message(number)))
            // Most go soon.
            if number > 10, number % 11 > 0 { kept.remove(message(number - 10)) }
        }
        for (task, message) in all where kept.contains(message) { #expect(tasks.find(task).contains(message)) }
        #expect(tasks.count >= kept.count && tasks.count <= kept.count * 2 + 100)
        #expect(tasks.find(Identifier128(high: 2, low: 1)) == [])
    }

    @Test func `the id of a task says where its devices are`() {
        let id = Identifier128(high: .max, low: .max)
        #expect(id.ending(in: 17).isOfSeveral == false)
        #expect(Partition(ofSingle: id.ending(in: 17)).index == 17)
        #expect(Identifier128(high: 0, low: 5).ofSeveral.isOfSeveral)
    }

    @Test func `the stop of a list is read as it was written`() throws {
        let app = try #require(AppID("shop"))
        let task = TaskID(Identifier128(high: 3, low: 4), monthDay: 1_130, kind: .list)
        let stop = ListStop(app: app, task: task, forgetAt: Instant(milliseconds: 5))
        let bytes = try #require(stop.row.value)
        #expect(ListStop(bytes) == stop)
        #expect(stop.end.value == nil && stop.end.name == stop.row.name)
        for count in 0..<bytes.count { #expect(ListStop(Array(bytes.prefix(count))) == nil) }
        #expect(ListStop(bytes + [0]) == nil)
    }
}
