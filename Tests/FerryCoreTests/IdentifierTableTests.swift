private import FerryCore
internal import Testing

struct IdentifierTableTests {
    private struct Random: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state &+= 0x9e37_79b9_7f4a_7c15
            var mixed = (state ^ (state >> 30)) &* 0xbf58_476d_1ce4_e5b9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
            return mixed ^ (mixed >> 31)
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `A table finds what a dictionary would`(seed: UInt64) {
        var random = Random(state: seed)
        var table = IdentifierTable(seed: Identifier128(high: random.next(), low: random.next()))
        var names: [Identifier128] = []
        var model: [Identifier128: UInt32] = [:]
        for _ in 0..<20_000 {
            // Few names, and such that differ in few bits: hits, repeats and neighbours.
            let name = Identifier128(
                high: UInt64.random(in: 0..<40, using: &random), low: UInt64.random(in: 0..<40, using: &random))
            switch Int.random(in: 0..<5, using: &random) {
            case 0, 1:
                names.append(name)
                let number = UInt32(names.count - 1)
                #expect(table.set(number, for: name) { names[Int($0)] } == model[name])
                model[name] = number
            case 3:
                names.append(name)
                let number = UInt32(names.count - 1)
                #expect(table.findOrInsert(number, for: name) { names[Int($0)] } == model[name])
                model[name] = model[name] ?? number
            case 2:
                if let number = model.removeValue(forKey: name) { table.remove(number, name) { names[Int($0)] } }
            default:
                // A number that the name does not stand for any more.
                if let other = names.lastIndex(of: name), model[name] != UInt32(other) {
                    table.remove(UInt32(other), name) { names[Int($0)] }
                }
            }
            #expect(table.find(name) { names[Int($0)] } == model[name])
        }
        #expect(table.count == model.count)
        for (name, number) in model { #expect(table.find(name) { names[Int($0)] } == number) }
    }

    @Test func `Names that were chosen to lie together do not`() {
        var table = IdentifierTable(seed: Identifier128(high: 0x1234_5678_9abc_def1, low: 0x0fed_cba9_8765_4321))
        var names: [Identifier128] = []
        for number in 0..<100_000 as Range<UInt64> {
            names.append(Identifier128(high: number << 40, low: number << 32))
            table.set(UInt32(number), for: names[Int(number)]) { names[Int($0)] }
        }
        var looks = 0
        for (number, name) in names.enumerated() {
            let found = table.find(name) {
                looks += 1
                return names[Int($0)]
            }
            #expect(found == UInt32(number))
        }
        #expect(looks < 110_000, "one look each, and hardly any in vain")
    }
}
