internal import FerryCore
@testable internal import FerryStore
internal import FerryTestSupport
internal import Testing

struct ReplayLogTests {
    private static func message(_ seq: UInt64) -> ReplayedMessage {
        ReplayedMessage(
            message: RecoveredMessage(
                seq: Seq(seq), expiresAt: .distantFuture, isLiveOnly: false, payloadBytes: 1, hasOwnAlert: false,
                stub: nil, location: RecordLocation(segment: 1, offset: 0, length: 0)),
            accepted: .due, hasRow: false)
    }

    @Test(arguments: Effort.seeds(20))
    func `A device's messages are those that were taken and have not ended, in order`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        var log = ReplayLog()
        var naive: [UInt64] = []
        for round in 0..<1_500 {
            switch UInt64.random(in: 0..<(round < 900 ? 5 : 3), using: &random) {
            case 0 where !naive.isEmpty:
                let seq = naive.remove(at: Int.random(in: naive.indices, using: &random))
                let (index, isThere) = log.search(Seq(seq))
                #expect(isThere)
                if isThere { log.end(at: index) }
                #expect(!log.search(Seq(seq)).isThere)
            case 1 where round % 8 == 0:
                let seq = (naive.first ?? 0) + UInt64.random(in: 0...6, using: &random)
                var ended: [UInt64] = []
                while let first = log.endFirst(upTo: Seq(seq)) { ended.append(first.message.seq.rawValue) }
                #expect(ended == naive.filter { $0 <= seq })
                naive.removeAll { $0 <= seq }
            default:
                let seq = UInt64.random(in: 1...3_000, using: &random)
                let (index, isThere) = log.search(Seq(seq))
                #expect(isThere == naive.contains(seq))
                guard !isThere else { continue }
                log.insert(Self.message(seq), at: index)
                naive = (naive + [seq]).sorted()
            }
            #expect(log.isEmpty == naive.isEmpty)
        }
        #expect(log.kept.map(\.message.seq.rawValue) == naive)
    }

    /// The start after a backlog had expired took minutes.
    @Test(arguments: [false, true])
    func `A backlog that ended message by message is replayed at once`(isBackwards: Bool) {
        let count: UInt64 = 200_000
        var log = ReplayLog()
        let time = ContinuousClock().measure {
            for seq in 1...count { log.append(Self.message(seq)) }
            for seq in 2...count {
                log.end(at: log.search(Seq(isBackwards ? count + 2 - seq : seq)).index)
            }
        }
        #expect(log.kept.map(\.message.seq.rawValue) == [1])
        #expect(time < .seconds(20))
    }
}
