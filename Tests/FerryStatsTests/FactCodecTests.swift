internal import FerryCore
@testable internal import FerryStats
internal import FerryTestSupport
internal import Testing

struct FactCodecTests {
    private func read(_ chunk: [UInt8]) -> (facts: [(device: CID, fact: TimedFact?)], isDamaged: Bool) {
        chunk.withUnsafeBytes { bytes in
            guard var reader = FactReader(bytes) else { return ([], true) }
            var found: [(CID, TimedFact?)] = []
            while let entry = reader.next() { found.append((entry.device, entry.fact)) }
            return (found, reader.isDamaged)
        }
    }

    private func chunk(_ facts: [Fact], _ devices: [CID], at time: Instant = at(5)) -> [UInt8] {
        var writer = FactWriter()
        for (index, fact) in facts.enumerated() { writer.append(fact, of: devices[index % devices.count], at: time) }
        return writer.take()
    }

    private let two = [Sample.device, Sample.device, CID(Identifier128(high: .max, low: .max))]

    @Test func `Every fact is read as it was written, whichever device the one before was of`() {
        for devices in [[Sample.device], two] {
            let found = read(chunk(Sample.facts, devices))
            #expect(!found.isDamaged)
            #expect(found.facts.map(\.fact?.fact) == Sample.facts)
            #expect(found.facts.allSatisfy { $0.fact?.at == at(5) })
            #expect(found.facts.map(\.device) == Sample.facts.indices.map { devices[$0 % devices.count] })
        }
    }

    @Test func `The devices of a chunk are told run by run, with tasks of one device, also of one that was cut`() {
        let bytes = chunk(Sample.facts, two)
        let expected = Sample.facts.indices.flatMap { index -> [CID] in
            let isNew = index == 0 || two[index % 3] != two[(index - 1) % 3]
            var names = isNew ? [two[index % 3]] : []
            if case .accepted(let message) = Sample.facts[index], !message.isBroadcast {
                names.append(CID(message.taskID.value))
            }
            return names
        }
        for count in 0...bytes.count {
            var found: [CID] = []
            bytes.withUnsafeBytes { all in
                FactReader.eachName(in: UnsafeRawBufferPointer(rebasing: all[..<count])) { found.append($0) }
            }
            #expect(expected.starts(with: found) && (count < bytes.count || found == expected))
        }
    }

    @Test func `Samples hold every kind`() {
        #expect(Set(Sample.facts.map(\.kind)) == Set(FactKind.allCases))
    }

    @Test func `A delivered message takes no entry of its own, the ack says it`() {
        var writer = FactWriter()
        let isWritten = writer.append(.ended(Seq(4), .acknowledged), of: Sample.device, at: at(0))
        #expect(!isWritten)
        #expect(writer.isEmpty)
        #expect(writer.take().isEmpty)
    }

    @Test func `A message's life online takes at most 110 bytes`() {
        let life: [Fact] = [
            .accepted(Sample.acceptance(1 << 40)), .sent(Seq(1 << 40), Sample.session, isOffLine: false),
            .ended(Seq(1 << 40), .acknowledged), .acknowledged(upTo: Seq(1 << 40)),
        ]
        let bytes = chunk(life, [Sample.device]).count - FactWriter.headerBytes
        #expect(bytes <= 110, "\(bytes)")
    }

    @Test func `A chunk cut anywhere gives the entries before the cut`() {
        let whole = chunk(Sample.facts, two)
        for length in 0..<whole.count {
            let found = read(Array(whole[..<length]))
            #expect(found.facts.count < Sample.facts.count)
            #expect(found.facts.map(\.fact?.fact) == Array(Sample.facts[..<found.facts.count]))
        }
    }

    @Test func `No byte can be changed so that reading traps or does not end`() {
        let whole = chunk(Sample.facts, two)
        for index in whole.indices {
            for change: UInt8 in [1, 0x80, 0xff] {
                var bytes = whole
                bytes[index] ^= change
                let found = read(bytes)
                #expect(found.facts.count <= whole.count)
            }
        }
    }

    @Test func `Bytes by chance are read without a trap`() {
        var dice = SplitMix(seed: 11)
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 0...120, using: &dice)).map { _ in UInt8.random(in: 0...255, using: &dice) }
            let found = read(bytes)
            for fact in found.facts.compactMap(\.fact) { _ = fact.fact.text(at: fact.at) }
        }
    }

    @Test func `A kind of a later version is stepped over`() {
        var bytes = chunk([.wentOffline, .started], [Sample.device])
        bytes[FactWriter.headerBytes] = 63
        let found = read(bytes)
        #expect(!found.isDamaged)
        #expect(found.facts.map(\.fact?.fact) == [nil, .started])
    }

    @Test func `A long reason is cut between two characters`() {
        let reason = String(repeating: "é", count: 150)
        let found = read(chunk([.stubAnswered(.own, upTo: Seq(1), .refused(reason))], [Sample.device]))
        #expect(
            found.facts.map(\.fact?.fact) == [
                .stubAnswered(.own, upTo: Seq(1), .refused(String(repeating: "é", count: 100)))
            ])
    }

    @Test func `Restored plus accepted is kept plus the sum of all ends`() {
        var dice = SplitMix(seed: 5)
        var counters = DeliveryCounters()
        var open = 0
        for _ in 0..<Int.random(in: 0...20, using: &dice) {
            counters.restore()
            open += 1
        }
        for _ in 0..<5_000 {
            var fact = Sample.facts[Int.random(in: Sample.facts.indices, using: &dice)]
            if open > 0, Bool.random(using: &dice) {
                fact = .ended(Seq(1), EndReason.allCases[Int.random(in: 0..<EndReason.allCases.count, using: &dice)])
            }
            switch fact {
            case .accepted(let acceptance): open += acceptance.isBroadcast ? 0 : 1
            case .broadcastPlaced(let targets): open += Int(targets)
            case .broadcastOver(_, let targets):
                guard open >= Int(targets) else { continue }
                open -= Int(targets)
            case .ended:
                guard open > 0 else { continue }
                open -= 1
            default: break
            }
            counters.count(fact)
            let ended = counters.ended.reduce(0, +)
            #expect(UInt64(counters.restored) + counters.accepted == UInt64(counters.kept) + ended)
            #expect(counters.kept == open)
        }
        #expect(counters.ended[Int(DeliveryState.kept.rawValue)] == 0)
    }

    @Test(arguments: EndReason.allCases) func `Every reason leads to a terminal state`(reason: EndReason) {
        #expect(reason.state.isTerminal)
    }
}
