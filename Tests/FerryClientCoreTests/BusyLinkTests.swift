internal import FerryClientCore
internal import FerryCore
internal import FerryTestSupport
internal import FerryWire
internal import Testing

/// A link's client when the gateway has no room (30019): by a gateway that is played here, which answers in order and says of
/// each push what the test wants.
struct BusyLinkTests {
    /// Both sides, with a clock.
    private struct Play {
        var machine: LinkClientStateMachine
        var now = Instant(milliseconds: 1_000_000)
        var random = SplitMix(seed: 7)
        /// What is out, in the order of its numbers on the present link.
        var out: [(device: UInt64, number: UInt64)] = []
        var answered: UInt64 = 0
        var accepted: [(device: UInt64, number: UInt64)] = []
        var refused: [UInt64] = []
        var isFinished = false
        var isLost = false

        init() throws {
            machine = LinkClientStateMachine(appID: try #require(AppID("app")))
            play(.started)
            open()
        }

        /// Comes back after a loss.
        mutating func comeBack() {
            waitForDeadline()
            isLost = false
            open()
        }

        mutating func open() {
            play(.connected)
            play(.frameReceived(.challenge(ChallengeFrame(nonce: .zero)), isProven: false))
            let welcome = LinkWelcomeFrame(serverTime: 0, keepAlive: 3_600, window: 4, windowBytes: 1 << 20)
            answered = 0
            play(.frameReceived(.welcome(welcome), isProven: true))
        }

        mutating func play(_ event: LinkClientEvent) {
            for action in machine.handle(event, now: now, using: &random) {
                switch action {
                case .push(let frame):
                    func number(_ start: Int) -> UInt64 { frame[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) } }
                    // Type and a length of one byte, the id, the device.
                    out.append((number(26), number(10)))
                case .tell(.accepted), .connect, .send, .prove, .tell(.opened), .tell(.stopped): break
                case .tell(.lost), .close:
                    out = []
                    isLost = true
                case .tell(.refused(let push, _, _)): refused.append(push.tag)
                case .tell(.finished): isFinished = true
                }
            }
            #expect(out.count <= 4)
        }

        mutating func queue(_ pushes: [(device: UInt64, number: UInt64)]) {
            play(
                .queued(
                    pushes.map {
                        LinkOutgoing(
                            tag: $0.number,
                            LinkPushFrame(
                                id: Identifier128(high: 0, low: $0.number),
                                cid: CID(Identifier128(high: 0, low: $0.device)), payload: [1]))
                    }))
        }

        /// Answers the first `count` that are out.
        mutating func answer(_ count: Int? = nil, busy isBusy: (_ device: UInt64, _ number: UInt64) -> Bool) {
            var refusals: [LinkRefusal] = []
            let count = count ?? out.count
            for push in out[..<count] {
                answered += 1
                if isBusy(push.device, push.number) {
                    refusals.append(LinkRefusal(number: answered, code: BusyPolicy.code, text: "busy"))
                } else {
                    accepted.append(push)
                }
            }
            out.removeFirst(count)
            let frame = LinkAnswerFrame(upTo: answered, refusals: refusals)
            play(.frameReceived(.answer(frame), isProven: false))
        }

        mutating func waitForDeadline() {
            if let deadline = machine.deadline { now = max(now, deadline) }
            play(.timerFired)
        }
    }

    @Test func `what was refused for want of room is sent again, not sooner than after a second`() throws {
        var play = try Play()
        play.queue([(1, 1)])
        play.play(.inputEnded)
        play.answer { _, _ in true }
        #expect(play.out.isEmpty && play.refused.isEmpty && !play.isFinished)
        let refusedAt = play.now
        play.now = play.now + .milliseconds(999)
        play.play(.timerFired)
        #expect(play.out.isEmpty)
        play.waitForDeadline()
        #expect(play.out.map(\.number) == [1])
        #expect(play.now - refusedAt >= .seconds(1) && play.now - refusedAt <= .milliseconds(1_500))
        play.answer { _, _ in false }
        #expect(play.accepted.map(\.number) == [1])
        #expect(play.isFinished)
    }

    @Test func `a device's pushes stay in order behind one that was refused, and others go on`() throws {
        var play = try Play()
        play.queue([(1, 1), (2, 2), (1, 3), (1, 4), (2, 5), (1, 6), (2, 7)])
        play.play(.inputEnded)
        // Out are 1 to 4. All of device 1 is busy.
        play.answer { device, _ in device == 1 }
        #expect(play.out.map(\.number) == [5, 7])
        play.answer { _, _ in false }
        #expect(play.machine.heldBack == 4)
        play.waitForDeadline()
        // One at a time, so that none can overtake.
        for number in [1, 3, 4, 6] as [UInt64] {
            #expect(play.out.map(\.number) == [number])
            play.answer { _, _ in false }
        }
        #expect(play.isFinished)
        #expect(play.accepted.map(\.number) == [2, 5, 7, 1, 3, 4, 6])
    }

    @Test func `a push is given up after ten refusals, and the next of its device after one`() throws {
        var play = try Play()
        play.queue([(1, 1), (1, 2), (1, 3)])
        play.play(.inputEnded)
        let start = play.now
        var refusals = 0
        while !play.isFinished, refusals < 100 {
            if play.out.isEmpty { play.waitForDeadline() }
            refusals += play.out.count
            play.answer { _, _ in true }
        }
        #expect(play.refused == [1, 2, 3])
        // Ten of the first; of the others the one in flight with it, and one try each.
        #expect(refusals == 14)
        #expect((120...240).contains((play.now - start).components.seconds))
        #expect(play.accepted.isEmpty)
    }

    @Test func `a lost link sends what was held back in its place`() throws {
        var play = try Play()
        play.queue([(1, 1), (1, 2), (2, 3)])
        play.answer(1) { _, _ in true }
        #expect(play.machine.heldBack == 1)
        play.play(.connectionLost("x"))
        play.comeBack()
        // The second was out, and waits behind the first now.
        #expect(play.out.map(\.number) == [3])
        play.answer { _, _ in false }
        play.waitForDeadline()
        while !play.out.isEmpty { play.answer { _, _ in false } }
        #expect(play.accepted.map(\.number) == [3, 1, 2])
    }

    /// By chance: refusals, late answers, lost links. Each push is accepted or refused once, and what was not out together with a
    /// refused one keeps its order.
    @Test func `every push has one outcome, and none is overtaken but by what was out with it`() throws {
        for seed in Effort.seeds(150) {
            var dice = SplitMix(seed: seed)
            func chance(_ of: UInt64) -> Bool { dice.next() % of == 0 }
            var play = try Play()
            var number: UInt64 = 0
            var steps = 0
            var isEnded = false
            while !play.isFinished, steps < 4_000 {
                steps += 1
                if play.isLost { play.comeBack() }
                let isCalm = steps > 400
                switch dice.next() % 6 {
                case 0 where number < 60:
                    number += 1
                    play.queue([(dice.next() % 3 + 1, number)])
                case 1, 2:
                    guard !play.out.isEmpty else { continue }
                    let count = 1 + Int(dice.next() % UInt64(play.out.count))
                    let verdicts = (0..<4).map { _ in !isCalm && dice.next() % 3 == 0 }
                    var at = 0
                    play.answer(count) { _, _ in
                        at += 1
                        return verdicts[at - 1]
                    }
                case 3: play.waitForDeadline()
                case 4 where !isCalm && chance(10):
                    play.play(.connectionLost("x"))
                default:
                    if number == 60, !isEnded {
                        isEnded = true
                        play.play(.inputEnded)
                    }
                }
            }
            #expect(play.isFinished, "seed \(seed)")
            let outcomes = play.accepted.map(\.number) + play.refused
            #expect(outcomes.sorted() == Array(1...60), "seed \(seed)")
            // At most three were out with any one.
            for device in 1...3 as ClosedRange<UInt64> {
                let numbers = play.accepted.filter { $0.device == device }.map(\.number)
                for (place, number) in numbers.enumerated() {
                    let overtaken = numbers[..<place].filter { $0 > number }.count
                    #expect(overtaken <= 3, "seed \(seed), push \(number)")
                }
            }
        }
    }
}
