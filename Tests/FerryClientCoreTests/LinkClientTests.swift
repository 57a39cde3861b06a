internal import FerryClientCore
internal import FerryCore
internal import FerryWire
internal import Testing

/// Random numbers that are always the same, so that waits can be computed.
private struct Constant: RandomNumberGenerator {
    mutating func next() -> UInt64 { 1 << 40 }
}

/// A link's client with its clock.
private struct LinkPlayer {
    var machine: LinkClientStateMachine
    var now = Instant(milliseconds: 1_000_000)
    private var random = Constant()

    init() throws { machine = LinkClientStateMachine(appID: try #require(AppID("app"))) }

    @discardableResult
    mutating func play(_ event: LinkClientEvent) -> [LinkClientAction] {
        machine.handle(event, now: now, using: &random)
    }

    /// To the welcome; what is done then.
    @discardableResult
    mutating func open(window: UInt64 = 3, windowBytes: UInt64 = 1 << 20) -> [LinkClientAction] {
        play(.started)
        return reopen(window: window, windowBytes: windowBytes)
    }

    @discardableResult
    mutating func reopen(window: UInt64 = 3, windowBytes: UInt64 = 1 << 20) -> [LinkClientAction] {
        play(.connected)
        play(.frameReceived(.challenge(ChallengeFrame(nonce: .zero)), isProven: false))
        let welcome = LinkWelcomeFrame(serverTime: 0, keepAlive: 30, window: window, windowBytes: windowBytes)
        return play(.frameReceived(.welcome(welcome), isProven: true))
    }

    mutating func answer(_ upTo: UInt64, refused: [UInt64] = []) -> [LinkClientAction] {
        let refusals = refused.map { LinkRefusal(number: $0, code: 20_001, text: "no") }
        return play(.frameReceived(.answer(LinkAnswerFrame(upTo: upTo, refusals: refusals)), isProven: false))
    }

    mutating func waitForDeadline() -> [LinkClientAction] {
        if let deadline = machine.deadline { now = deadline }
        return play(.timerFired)
    }
}

struct LinkClientTests {
    private func pushes(_ tags: ClosedRange<UInt64>) -> [LinkOutgoing] {
        tags.map {
            LinkOutgoing(
                tag: $0,
                LinkPushFrame(
                    id: Identifier128(high: 1, low: $0), cid: CID(Identifier128(high: 2, low: 3)),
                    payload: [UInt8](repeating: 7, count: 100)))
        }
    }

    /// The tags of the pushes that are sent.
    private func sent(_ actions: [LinkClientAction]) -> [UInt64] {
        actions.compactMap {
            guard case .push(let frame) = $0 else { return nil }
            // Type and a length of two bytes stand before the id.
            return frame[3..<19].reduce(0) { $0 << 8 | UInt64($1) } & 0xff
        }
    }

    private func accepted(_ actions: [LinkClientAction]) -> Int {
        actions.reduce(0) {
            guard case .tell(.accepted(let count)) = $1 else { return $0 }
            return $0 + count
        }
    }

    @Test func `a link opens by hello, proof and a proven welcome`() throws {
        var player = try LinkPlayer()
        #expect(player.play(.started) == [.connect])
        guard case .send(.hello)? = player.play(.connected).first else { throw Failure() }
        let prove = player.play(.frameReceived(.challenge(ChallengeFrame(nonce: .zero)), isProven: false))
        #expect(prove == [.prove(LinkLoginFrame(appID: player.machine.appID))])
        let welcome = LinkWelcomeFrame(serverTime: 0, keepAlive: 30, window: 3, windowBytes: 1 << 20)
        var unproven = player
        let refused = unproven.play(.frameReceived(.welcome(welcome), isProven: false))
        guard case .close? = refused.first, case .tell(.lost(.unproven, _))? = refused.last else { throw Failure() }
        #expect(player.play(.frameReceived(.welcome(welcome), isProven: true)) == [.tell(.opened(window: 3))])
    }

    private struct Failure: Error {}

    @Test func `no more than the window is out, and answers make room`() throws {
        var player = try LinkPlayer()
        player.open()
        #expect(sent(player.play(.queued(pushes(1...5)))) == [1, 2, 3])
        let actions = player.answer(2)
        #expect(accepted(actions) == 2)
        #expect(sent(actions) == [4, 5])
        #expect(player.machine.unanswered == 3)
        #expect(accepted(player.answer(5)) == 3)
    }

    @Test func `no more bytes than the window's are out`() throws {
        var player = try LinkPlayer()
        player.open(window: 100, windowBytes: UInt64(Limits.linkFrameBytes))
        let body = pushes(1...1)[0].bodyBytes
        let many = pushes(1...250)
        #expect(sent(player.play(.queued(many))).count == 100)
        var narrow = try LinkPlayer()
        narrow.open(window: 1_000, windowBytes: UInt64(body * 10 + 5))
        #expect(sent(narrow.play(.queued(many))).count == 10)
        #expect(sent(narrow.answer(4)).count == 4)
    }

    @Test func `refusals are told by what was queued, each push once`() throws {
        var player = try LinkPlayer()
        player.open()
        let queued = pushes(1...3)
        player.play(.queued(queued))
        let actions = player.answer(3, refused: [2])
        #expect(accepted(actions) == 2)
        #expect(actions.contains(.tell(.refused(queued[1], code: 20_001, text: "no"))))
        #expect(player.machine.unanswered == 0)
    }

    @Test func `what has no answer when a link is lost is sent again on the next, first and in order`() throws {
        var player = try LinkPlayer()
        player.open()
        player.play(.queued(pushes(1...6)))
        #expect(accepted(player.answer(1)) == 1)
        let lost = player.play(.connectionLost("gone"))
        guard case .tell(.lost(.lost("gone"), again: let delay))? = lost.last, delay <= .seconds(1) else {
            throw Failure()
        }
        player.play(.queued(pushes(7...7)))
        #expect(player.waitForDeadline() == [.connect])
        #expect(sent(player.reopen()) == [2, 3, 4])
        // Numbers begin anew.
        let actions = player.answer(3)
        #expect(accepted(actions) == 3)
        #expect(sent(actions) == [5, 6, 7])
        player.play(.inputEnded)
        #expect(player.answer(6).suffix(2) == [.close, .tell(.finished)])
        #expect(player.machine.phase == .ended)
    }

    @Test func `a gateway that answers what was not asked is left`() throws {
        for (upTo, refused) in [(3, [] as [UInt64]), (.max, []), (0, []), (2, [1])] as [(UInt64, [UInt64])] {
            var player = try LinkPlayer()
            player.open()
            player.play(.queued(pushes(1...2)))
            if upTo == 2 { _ = player.answer(1) }
            guard case .close? = player.answer(upTo, refused: refused).first else {
                Issue.record("\(upTo) \(refused)")
                continue
            }
            #expect(player.machine.unanswered == (upTo == 2 ? 1 : 2))
        }
    }

    @Test func `the codes of a close decide whether it comes back`() throws {
        for code in CloseCode.all {
            var player = try LinkPlayer()
            player.open()
            let queued = pushes(1...2)
            player.play(.queued(queued))
            let frame = CloseFrame(code: code, text: "x", retryAfter: 5_000)
            let actions = player.play(.frameReceived(.close(frame), isProven: false))
            let reason = OfflineReason.closed(code, text: "x")
            if code.rawValue < 3_000 {
                guard case .tell(.lost(reason, again: let delay))? = actions.last else { throw Failure() }
                #expect(delay >= .seconds(5))
            } else {
                #expect(actions == [.close, .tell(.stopped(reason, unanswered: queued))])
                #expect(player.play(.queued(queued)).isEmpty)
            }
        }
    }

    @Test func `a silent link is probed, and left when nothing comes`() throws {
        var player = try LinkPlayer()
        player.open()
        #expect(player.waitForDeadline() == [.send(.ping)])
        var silent = player
        guard case .tell(.lost(.noAnswer, _))? = silent.waitForDeadline().last else { throw Failure() }
        player.play(.bytesReceived)
        #expect(player.play(.frameReceived(.pong, isProven: false)).isEmpty)
        #expect(player.waitForDeadline() == [.send(.ping)])
    }

    @Test func `the end of input waits for the last answer, and a stop names what has none`() throws {
        var player = try LinkPlayer()
        player.open()
        let queued = pushes(1...5)
        player.play(.queued(queued))
        #expect(player.play(.inputEnded).isEmpty)
        _ = player.answer(2)
        var stopped = player
        #expect(stopped.play(.stopRequested) == [.close, .tell(.stopped(nil, unanswered: Array(queued[2...])))])
        #expect(player.answer(5).last == .tell(.finished))
        var empty = try LinkPlayer()
        empty.play(.started)
        #expect(empty.play(.inputEnded) == [.close, .tell(.finished)])
    }

    /// A gateway by chance: answers, refuses, hangs up, forgets; what it accepted is compared with what was told.
    @Test func `each push is told once and delivered in order, whatever happens to its links`() throws {
        for seed in 0..<150 as Range<UInt64> {
            var random = Chance(state: seed)
            var player = try LinkPlayer()
            player.open()
            let all = pushes(1...60)
            var next = 0
            /// Tags on the present link, by number; and those that are stored, in order, without repeats.
            var link: [UInt64] = []
            var answered = 0
            var stored: [UInt64] = []
            var told = 0
            func take(_ actions: [LinkClientAction]) {
                link += sent(actions)
                told += accepted(actions)
            }
            for _ in 0..<2_000 where told < all.count {
                switch random.next() % 8 {
                case 0, 1, 2:
                    let end = min(all.count, next + Int(random.next() % 5))
                    take(player.play(.queued(Array(all[next..<end]))))
                    next = end
                case 3, 4, 5:
                    guard answered < link.count else { continue }
                    let end = answered + 1 + Int(random.next() % UInt64(link.count - answered))
                    for tag in link[answered..<end] where !stored.contains(tag) { stored.append(tag) }
                    answered = end
                    take(player.answer(UInt64(end)))
                case 6:
                    // Some of what was sent is stored and its answer lost.
                    let end = answered + Int(random.next() % UInt64(link.count - answered + 1))
                    for tag in link[answered..<end] where !stored.contains(tag) { stored.append(tag) }
                    take(player.play(.connectionLost("x")))
                    (link, answered) = ([], 0)
                    _ = player.waitForDeadline()
                    take(player.reopen())
                default: break
                }
            }
            #expect(told == all.count && stored == all.map(\.tag), "seed \(seed)")
        }
    }

    private struct Chance {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 33
        }
    }
}
