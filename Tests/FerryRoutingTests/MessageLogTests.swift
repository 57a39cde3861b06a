private import FerryCore
private import FerryRouting
internal import FerryTestSupport
internal import Testing

struct MessageLogTests {
    private static func message(_ seq: UInt64, bytes: UInt32) -> KeptMessage {
        DeviceScenario.Sort.long.message(seq: seq, now: .distantPast, bytes: bytes, stub: .none)
    }

    /// A message removed from the middle, as the last one behind acknowledged ones, left the log thinking that an
    /// acknowledged one was its last, and kept the memory of an idle device.
    @Test func `A log that a removal empties has no last message`() {
        var log = MessageLog()
        log.append(Self.message(1, bytes: 1))
        log.append(Self.message(2, bytes: 1))
        #expect(log.removeFirst()?.seq == Seq(1))
        #expect(log.remove(at: 0).seq == Seq(2))
        #expect(log.isEmpty)
        #expect(log.last == nil)
    }

    @Test(arguments: Effort.seeds(20))
    func `A log holds what an array would`(_ seed: UInt64) {
        var random = SplitMix(seed: seed)
        var log = MessageLog()
        var naive: [KeptMessage] = []
        var seq: UInt64 = 0
        // Growing, then shrinking, so that cutting off at the front is seen in both.
        for round in 0..<600 {
            switch UInt64.random(in: 0..<(round < 300 ? 9 : 5), using: &random) {
            case 4 where round % 8 == 0:
                let from = Int.random(in: 0...naive.count, using: &random)
                let rest = UInt64.random(in: 0...3, using: &random)
                func goes(_ message: KeptMessage) -> Bool { message.seq.rawValue % 4 == rest }
                #expect(log.removeAll(from: from, where: goes) == naive[from...].filter(goes))
                naive = naive[..<from] + naive[from...].filter { !goes($0) }
            case 0...1:
                #expect(log.removeFirst() == (naive.isEmpty ? nil : naive.removeFirst()))
            case 2...3 where !naive.isEmpty:
                let index = Int.random(in: naive.indices, using: &random)
                #expect(log.remove(at: index) == naive.remove(at: index))
            default:
                seq += UInt64.random(in: 1...3, using: &random)
                let message = Self.message(seq, bytes: UInt32.random(in: 0...70_000, using: &random))
                log.append(message)
                naive.append(message)
            }
            #expect(log.count == naive.count && log.isEmpty == naive.isEmpty)
            #expect(log.first == naive.first && log.last == naive.last)
            #expect(log.bytes == naive.reduce(0) { $0 + Int($1.payloadBytes) })
            let wanted = Seq(UInt64.random(in: 0...(seq + 1), using: &random))
            #expect(log.firstIndex(after: wanted) == naive.firstIndex { $0.seq > wanted } ?? naive.count)
        }
        #expect((0..<log.count).map { log[$0] } == naive)
    }

    @Test func `Two logs with the same messages are the same, whatever left them before`() {
        var worn = MessageLog()
        var fresh = MessageLog()
        for seq in 1...100 as ClosedRange<UInt64> { worn.append(Self.message(seq, bytes: 1)) }
        for _ in 1...50 { _ = worn.removeFirst() }
        for seq in 51...100 as ClosedRange<UInt64> { fresh.append(Self.message(seq, bytes: 1)) }
        #expect(worn == fresh)
        #expect(worn.hashValue == fresh.hashValue)
        fresh[3].wasOffline = true
        #expect(worn != fresh)
    }
}
