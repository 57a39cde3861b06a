internal import FerryClientCore
internal import FerryCore
internal import FerryWire
internal import Testing

/// Walks breadth-first through what can happen to a client and checks at each step what must hold always.
struct ReachabilityTests {
    /// A machine with what its driver and its peer would know.
    private struct World: Hashable {
        var machine: ClientStateMachine
        var now = Fixtures.start
        var hasSocket = false
        var isConnected = false
        var saved: ClientRecord
        /// Given to the app and not yet taken by it.
        var onItsWay: [Seq] = []
        /// The last that the app got since the numbers began anew.
        var lastHanded: Seq
        var streamed: Seq = .zero
        var mustStaySilent = false
    }

    private var events: [ClientEvent] {
        [
            .started, .connected, .connectionLost("x"), Fixtures.challenge, Fixtures.registered(),
            Fixtures.registered(isProven: false), Fixtures.welcome(isResumed: true), Fixtures.welcome(isResumed: false),
            Fixtures.welcome(isResumed: true, isProven: false), Fixtures.push(1), Fixtures.push(2), Fixtures.push(3),
            Fixtures.gap(2), .frameReceived(.ping, isProven: false), Fixtures.resumed(true), Fixtures.resumed(false),
            Fixtures.close(.overloaded, retryAfter: 5_000), Fixtures.close(.logInAgain), Fixtures.close(.unknownDevice),
            Fixtures.close(.takenOver), Fixtures.close(.protocolError), .timerFired, .savingFailed("x"),
            .bytesReceived, .readingEnded, .enteredForeground, .enteredBackground, .stopRequested,
        ]
    }

    /// The world after an event, or nil when the event cannot happen in it. Reports what must not be.
    private func step(_ world: World, _ event: ClientEvent) -> World? {
        var next = world
        switch event {
        case .connected:
            guard world.hasSocket, !world.isConnected else { return nil }
            next.isConnected = true
        case .connectionLost:
            guard world.hasSocket else { return nil }
            next.hasSocket = false
            next.isConnected = false
        case .frameReceived(let frame, _):
            guard world.isConnected else { return nil }
            switch frame {
            case .push(let push): next.streamed = max(world.streamed, push.seq)
            case .gap(let gap): next.streamed = max(world.streamed, gap.seq)
            default: break
            }
        case .savingFailed:
            guard world.hasSocket else { return nil }
        case .timerFired:
            guard let deadline = world.machine.deadline else { return nil }
            next.now = max(world.now, deadline)
        case .handed(let seq):
            guard world.onItsWay.first == seq else { return nil }
            next.onItsWay.removeFirst()
        default: break
        }
        var random = FixedRandom(value: .max)
        let actions = next.machine.handle(event, now: next.now, using: &random)
        if world.mustStaySilent { #expect(actions.isEmpty) }
        if startsNumbersAnew(world, next, event) {
            next.lastHanded = .zero
            next.onItsWay = []
        }
        for action in actions { perform(action, in: &next) }
        check(next, after: event)
        return next
    }

    private func startsNumbersAnew(_ before: World, _ after: World, _ event: ClientEvent) -> Bool {
        guard case .frameReceived(let frame, let isProven) = event else { return false }
        switch frame {
        case .welcome(let welcome):
            guard case .awaitingWelcome = before.machine.phase else { return false }
            return isProven && !welcome.isResumed
        case .resumed(let resumed):
            guard case .attached(let attachment) = before.machine.phase else { return false }
            return attachment.resumesAwaited > 0 && !resumed.isResumed
        case .close(let close): return close.code.duty == .registerAnew && before.machine.hasConnection
        default: return false
        }
    }

    private func perform(_ action: ClientAction, in world: inout World) {
        switch action {
        case .connect:
            #expect(!world.hasSocket)
            world.hasSocket = true
            world.streamed = .zero
        case .send(let frame), .prove(let frame):
            #expect(world.isConnected)
            switch frame {
            case .ack(let ack):
                #expect(
                    ack.seq <= world.lastHanded && world.onItsWay.allSatisfy { ack.seq < $0 },
                    "acknowledges what was not handed")
                #expect(ack.seq <= world.saved.lastSeq, "acknowledges what was not saved")
                #expect(ack.seq <= world.streamed, "acknowledges what this connection did not carry")
            case .foreground(let foreground): #expect(foreground.lastSeq == world.saved.lastSeq)
            case .login(let login):
                #expect(login.lastSeq == world.saved.lastSeq && login.epoch == world.saved.epoch)
                #expect(login.cid == world.saved.identity?.cid)
            case .register(let register): #expect(register.installationKey == world.saved.installationKey)
            default: break
            }
        case .save(let record): world.saved = record
        case .hand(let push): hand(push.seq, in: &world)
        case .handGap(let gap): hand(gap.seq, in: &world)
        case .close:
            #expect(world.hasSocket)
            world.hasSocket = false
            world.isConnected = false
        case .tell(.offline(_, .after(let delay))):
            #expect(delay <= ClientLimits.backoffMaximum + ClientLimits.retryAfterMaximum)
        case .tell(.stopped): world.mustStaySilent = true
        case .tell: break
        }
    }

    private func hand(_ seq: Seq, in world: inout World) {
        #expect(seq > world.lastHanded, "hands \(seq) a second time")
        world.lastHanded = seq
        world.onItsWay.append(seq)
    }

    private func check(_ world: World, after event: ClientEvent) {
        #expect(world.machine.hasConnection == world.hasSocket, "after \(event)")
        switch world.machine.phase {
        case .idle, .asleep, .stopped: #expect(world.machine.deadline == nil)
        case .waiting, .connecting, .awaitingChallenge, .awaitingRegistered, .awaitingWelcome, .attached:
            #expect(world.machine.deadline != nil, "waits for ever after \(event)")
        }
        guard case .frameReceived(.close(let close), _) = event else { return }
        switch close.code.duty {
        case .stop: #expect(world.machine.phase == .stopped)
        case .stopUntilForeground: #expect(world.machine.phase == .asleep)
        case .reconnectWithBackoff, .reconnectAtOnce, .registerAnew: #expect(!world.machine.hasConnection)
        }
    }

    @Test(arguments: [true, false])
    func `no walk through a client's life breaks a promise`(hasIdentity: Bool) throws {
        let machine = try Fixtures.machine(hasIdentity: hasIdentity)
        let first = World(machine: machine, saved: machine.record, lastHanded: machine.record.lastSeq)
        var seen: Set<World> = [first]
        var queue = [first]
        var index = 0
        var transitions = 0
        while index < queue.count && queue.count < 4_000 {
            let world = queue[index]
            index += 1
            let events = world.onItsWay.map(ClientEvent.handed) + events
            for event in events {
                guard let next = step(world, event) else { continue }
                transitions += 1
                if seen.insert(next).inserted { queue.append(next) }
            }
        }
        #expect(transitions > 10_000)
        #expect(
            queue.contains {
                if case .attached(let attachment) = $0.machine.phase { attachment.isInBackground } else { false }
            })
        #expect(queue.contains { $0.machine.phase == .stopped })
    }
}
