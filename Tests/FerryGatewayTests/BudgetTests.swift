internal import FerryCore
@testable internal import FerryGateway
internal import Testing

struct BudgetTests {
    @Test func `A budget is taken up to its last unit and no further, and what is given back is there again`() {
        let budget = Budget(key: "storeBytes", cap: 100)
        #expect(budget.take(60))
        #expect(!budget.take(41))
        #expect(budget.take(40))
        #expect(!budget.take(1))
        budget.change(by: -40)
        #expect(budget.take(40))
        #expect(!budget.take(1))
    }

    @Test func `What is there already counts, also above the budget`() {
        let budget = Budget(key: "memoryBytes", cap: 100)
        budget.change(by: 100)
        #expect(!budget.isExceeded(by: 0) && budget.isExceeded(by: 1))
        #expect(!budget.isFarExceeded)
        budget.change(by: 25)
        #expect(!budget.isFarExceeded)
        budget.change(by: 1)
        #expect(budget.isFarExceeded && !budget.take(0))
        budget.change(by: -126)
        #expect(budget.take(100))
    }

    @Test func `Nothing is too much where there is no limit`() {
        let budget = Budget(key: "memoryBytes", cap: .unlimited)
        budget.change(by: 1 << 50)
        #expect(budget.take(1 << 50) && !budget.isExceeded(by: 1 << 50) && !budget.isFarExceeded)
    }

    @Test func `The usual limits follow from the machine and from the segments`() throws {
        var configuration = GatewayConfiguration(
            identity: try #require(Identity(key: Array(repeating: 0, count: 32))))
        #expect(configuration.usedMemoryBytes(machine: 1 << 30) == Cap(1 << 29))
        #expect(configuration.usedMemoryBytes(machine: nil).isUnlimited)
        configuration.memoryBytes = 1_000_000
        #expect(configuration.usedMemoryBytes(machine: 1 << 30) == 1_000_000)
        configuration.segmentBytes = 1_000
        #expect(configuration.usedDiskReserve == 8_000)
        configuration.diskReserveBytes = 7
        #expect(configuration.usedDiskReserve == 7)
    }

    @Test(arguments: [64, 256, 1_024, 20_000, 1 << 20], [1, 4, 64])
    func `Connections leave the store and the shards their descriptors`(limit: Int, shards: Int) {
        let plan = DescriptorPlan(limit: limit, shards: shards, keptSegments: 4)
        #expect(plan.connections >= 16 && plan.tableFiles >= 32 && plan.tableFiles <= 256)
        // Below that nothing helps.
        guard limit >= 256 + 4 * shards else { return }
        #expect(plan.connections + plan.tableFiles + 3 * shards + 4 + 40 <= limit)
        #expect(plan.connections >= limit / 5)
    }
}
