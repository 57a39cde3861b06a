@testable internal import FerryStore
internal import Testing

struct KeyNumberTests {
    @Test func `A power of two is added with its carry, and nothing is beyond the last key`() {
        #expect(KeyNumber([1]).adding(bit: 0) == KeyNumber([1] + [UInt8](repeating: 0, count: 38) + [1]))
        #expect(KeyNumber([1, 0xff]).adding(bit: 38 * 8) == KeyNumber([2]))
        #expect(KeyNumber([0xff]).adding(bit: 39 * 8) == nil)
    }

    @Test func `The middle is between, also where the sum is beyond the last key`() {
        #expect(KeyNumber([2]).middle(to: KeyNumber([4])) == KeyNumber([3]))
        #expect(KeyNumber([0xfe]).middle(to: KeyNumber([0xff])) == KeyNumber([0xfe, 0x80]))
        let low = KeyNumber([7, 7])
        #expect(low.adding(bit: 0).map { low.middle(to: $0) } == low)
    }

    @Test func `A number stands for its shortest key`() {
        #expect(Array(KeyNumber([5, 0, 6, 0, 0]).key) == [5, 0, 6])
        #expect(Array(KeyNumber([]).key).isEmpty)
    }
}
