internal import FerryCore
@testable internal import FerryGateway
internal import Testing

struct TaskSlotsTests {
    private func task(_ number: UInt64) -> Identifier128 { Identifier128(high: 1, low: number) }

    @Test func `a task keeps its number until its last message is gone, and another gets it then`() {
        var slots = TaskSlots()
        let first = slots.retain(task(1))
        #expect(first != TaskSlots.none && slots.retain(task(1)) == first)
        let second = slots.retain(task(2))
        #expect(second != first)
        #expect(slots.release(first) == task(1))
        #expect(slots.retain(task(3)) != first)
        #expect(slots.release(first) == task(1))
        #expect(slots.release(first) == nil)
        #expect(slots.retain(task(4)) == first)
        #expect(slots.count == 3)
    }

    @Test func `more tasks than there are numbers have none`() {
        var slots = TaskSlots()
        for number in 1...65_535 as ClosedRange<UInt64> { #expect(slots.retain(task(number)) == UInt16(number)) }
        #expect(slots.retain(task(70_000)) == TaskSlots.none)
        #expect(slots.release(TaskSlots.none) == nil)
        #expect(slots.retain(task(65_535)) == 65_535)
    }
}
