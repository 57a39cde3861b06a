internal import FerryClientCore
internal import FerryCore
internal import FerryWire
internal import Testing

struct ScenarioTests {
    private func acks(_ actions: [ClientAction]) -> [UInt64] {
        actions.compactMap { if case .send(.ack(let ack)) = $0 { ack.seq.rawValue } else { nil } }
    }

    @Test func `one message is acknowledged a second after it was handed over, and saved before`() throws {
        var player = try Player.online()
        player.play(Fixtures.push(2))
        #expect(player.play(.handed(Seq(2))).isEmpty)
        let before = player.now
        let actions = player.playTimer()
        #expect(player.now - before == .seconds(1))
        #expect(Spelling.of(actions) == "save somebody at 2, send ack 2")
        #expect(player.playTimer().contains(.send(.ping)))
    }

    @Test func `many messages share one ack, at 32 of them`() throws {
        var player = try Player.online()
        for seq in 2...32 as ClosedRange<UInt64> {
            #expect(player.play([Fixtures.push(seq), .handed(Seq(seq))]).isEmpty)
        }
        #expect(acks(player.play([Fixtures.push(33), .handed(Seq(33))])) == [33])
    }

    @Test(arguments: [(1, 1), (2, 1), (7, 3), (1_024, 32)] as [(UInt64, Int)])
    func `half a window is acknowledged at once`(window: UInt64, count: Int) throws {
        var player = try Player.online(window: window)
        for seq in 2..<UInt64(count + 2) {
            let actions = player.play([Fixtures.push(seq), .handed(Seq(seq))])
            #expect(acks(actions) == (seq == UInt64(count + 1) ? [seq] : []))
        }
    }

    @Test func `what one read brought has one ack, at its end`() throws {
        var player = try Player.online(window: 1_024)
        player.play(.bytesReceived)
        for seq in 2...101 as ClosedRange<UInt64> {
            #expect(player.play([Fixtures.push(seq), .handed(Seq(seq))]).isEmpty)
        }
        #expect(Spelling.of(player.play(.readingEnded)) == "save somebody at 101, send ack 101")
        // Few are no reason, and wait for the next read or their time.
        player.play([.bytesReceived, Fixtures.push(102), .handed(Seq(102))])
        #expect(player.play(.readingEnded).isEmpty)
        #expect(acks(player.playTimer()) == [102])
    }

    @Test func `half a window does not wait for the end of a read, nor does a slow app`() throws {
        var player = try Player.online(window: 64)
        player.play(.bytesReceived)
        for seq in 2...32 as ClosedRange<UInt64> { player.play([Fixtures.push(seq), .handed(Seq(seq))]) }
        #expect(acks(player.play([Fixtures.push(33), .handed(Seq(33))])) == [33])

        player = try Player.online(window: 1_024)
        player.play([.bytesReceived, Fixtures.push(2), .handed(Seq(2)), Fixtures.push(3)])
        player.now = player.now + .seconds(1)
        #expect(acks(player.play(.handed(Seq(3)))) == [3])
        #expect(player.play(.readingEnded).isEmpty)
    }

    @Test func `the end of a read acknowledges nothing that the app has not taken`() throws {
        var player = try Player.online(window: 1_024)
        player.play(.bytesReceived)
        for seq in 2...101 as ClosedRange<UInt64> { player.play(Fixtures.push(seq)) }
        #expect(player.play(.readingEnded).isEmpty)
        #expect(acks(player.play(.handed(Seq(40)))) == [40])
    }

    @Test func `half a window of bytes is acknowledged at once`() throws {
        var player = try Player.online()
        #expect(player.play([Fixtures.push(2, bytes: 65_536), .handed(Seq(2))]).isEmpty)
        #expect(acks(player.play([Fixtures.push(3, bytes: 65_536), .handed(Seq(3))])) == [3])
    }

    @Test func `a repeat is not handed over and is acknowledged again`() throws {
        var player = try Player.online()
        #expect(player.play(Fixtures.push(1)).isEmpty)
        #expect(acks(player.playTimer()) == [1])
    }

    @Test func `a repeat never acknowledges more than this connection carried`() throws {
        var player = try Player.online()
        player.play([Fixtures.push(5), .handed(Seq(5)), .connectionLost("x")])
        player.playTimer()
        player.play([.connected, Fixtures.challenge, Fixtures.welcome(isResumed: true), Fixtures.push(3)])
        #expect(acks(player.playTimer()) == [3])
    }

    @Test func `another epoch begins the numbers anew`() throws {
        var player = Player(try Fixtures.machine(hasIdentity: true))
        player.play([.started, .connected, Fixtures.challenge, Fixtures.welcome(isResumed: false)])
        #expect(player.machine.record.lastSeq == .zero)
        #expect(Spelling.of(player.play(Fixtures.push(1))) == "hand 1")
    }

    @Test func `a client that does not acknowledge keeps its place and hands nothing twice`() throws {
        var player = try Player.online(acknowledges: false)
        player.play([Fixtures.push(2), .handed(Seq(2))])
        #expect(player.machine.record.lastSeq == Seq(1))
        #expect(player.playTimer() == [.send(.ping)])
        player.play(.connectionLost("x"))
        player.playTimer()
        player.play(.connected)
        #expect(Spelling.of(player.play(Fixtures.challenge)) == "prove login after 1")
        #expect(player.play([Fixtures.welcome(isResumed: true), Fixtures.push(2)]).isEmpty)
    }

    @Test func `a quiet connection is pinged, and given up when nothing answers`() throws {
        var player = try Player.online()
        let begin = player.now
        #expect(player.playTimer() == [.send(.ping)])
        #expect(player.now - begin == .seconds(240))
        let actions = player.playTimer()
        #expect(player.now - begin == .seconds(270))
        #expect(actions.first == .close(flushing: false))
    }

    @Test func `any byte is an answer to a ping`() throws {
        var player = try Player.online()
        player.playTimer()
        player.play(.bytesReceived)
        #expect(player.playTimer() == [.send(.ping)])
    }

    @Test func `waits double from one second to five minutes`() throws {
        var player = Player(try Fixtures.machine(hasIdentity: true))
        player.play(.started)
        var waits: [Int64] = []
        for _ in 0..<12 {
            player.play(.connectionLost("x"))
            let deadline = try #require(player.machine.deadline)
            waits.append((deadline - player.now).inMilliseconds / 1_000)
            player.playTimer()
        }
        #expect(waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300])
    }

    @Test func `a session that lasted a minute forgets earlier failures`() throws {
        for (seconds, expected) in [(59, 2), (60, 1)] as [(Int64, Int64)] {
            var player = Player(try Fixtures.machine(hasIdentity: true))
            player.play([.started, .connectionLost("x")])
            player.playTimer()
            player.play([.connected, Fixtures.challenge, Fixtures.welcome(isResumed: true)])
            player.now = player.now + .seconds(seconds)
            player.play(.connectionLost("x"))
            let deadline = try #require(player.machine.deadline)
            #expect((deadline - player.now).inMilliseconds == expected * 1_000)
        }
    }

    @Test func `what a gateway asks to wait comes before the random wait, and an hour at most`() throws {
        var player = try Player.online()
        player.random = .least
        player.play(Fixtures.close(.overloaded, retryAfter: 7_000))
        #expect(player.machine.phase == .waiting(until: player.now + .seconds(7)))
        player = try Player.online()
        player.random = .least
        player.play(Fixtures.close(.overloaded, retryAfter: .max))
        #expect(player.machine.phase == .waiting(until: player.now + .seconds(3_600)))
    }

    @Test func `coming to the foreground cuts a random wait short, not one that was asked for`() throws {
        var player = try Player.online()
        player.play(.connectionLost("x"))
        #expect(player.play(.enteredForeground) == [.connect])
        player = try Player.online()
        player.play(Fixtures.close(.overloaded, retryAfter: 7_000))
        #expect(player.play(.enteredForeground).isEmpty)
        #expect(player.machine.phase == .waiting(until: player.now + .seconds(7)))
    }

    @Test func `log in again is obeyed at once, and a second time with back-off`() throws {
        var player = try Player.online()
        player.play(Fixtures.close(.logInAgain))
        #expect(player.machine.phase == .waiting(until: player.now))
        player.playTimer()
        player.play([.connected, Fixtures.close(.logInAgain)])
        #expect(player.machine.phase == .waiting(until: player.now + .seconds(1)))
    }

    @Test func `register anew forgets all, the installation key too`() throws {
        var player = try Player.online()
        let actions = player.play(Fixtures.close(.unknownDevice))
        #expect(actions.contains(.save(ClientRecord())))
        player.playTimer()
        player.play(.connected)
        let register = player.play(Fixtures.challenge)
        #expect(player.machine.record.installationKey != nil)
        #expect(register.first == .save(player.machine.record))
        #expect(Spelling.of(register).hasSuffix("prove register"))
    }

    @Test func `a registration whose answer was lost is repeated with the same key`() throws {
        var player = Player(try Fixtures.machine(hasIdentity: false))
        player.play([.started, .connected, Fixtures.challenge])
        let key = player.machine.record.installationKey
        player.random.value = 3
        player.play(.connectionLost("x"))
        player.playTimer()
        player.play([.connected, Fixtures.challenge])
        #expect(key != nil)
        #expect(player.machine.record.installationKey == key)
    }

    @Test func `a wrong proof costs the connection and not the identity`() throws {
        var player = Player(try Fixtures.machine(hasIdentity: true))
        player.play([.started, .connected, Fixtures.challenge, Fixtures.welcome(isResumed: true, isProven: false)])
        #expect(player.machine.record.identity == Fixtures.identity)
        #expect(!player.machine.hasConnection)
    }

    @Test func `hiding the app acknowledges, then says background; showing it says foreground`() throws {
        var player = try Player.online()
        player.play([Fixtures.push(2), .handed(Seq(2))])
        #expect(
            Spelling.of(player.play(.enteredBackground)) == "save somebody at 2, send ack 2, send background")
        #expect(Spelling.of(player.play(.enteredForeground)) == "send foreground after 2")
        #expect(Spelling.of(player.play(Fixtures.resumed(true))) == "tell online")
    }

    @Test func `stopping acknowledges, then says bye`() throws {
        var player = try Player.online()
        player.play([Fixtures.push(2), .handed(Seq(2))])
        #expect(
            Spelling.of(player.play(.stopRequested))
                == "save somebody at 2, send ack 2, send bye, flush and close, tell stopped")
    }

    @Test func `what could not be saved is saved before the next attempt`() throws {
        var player = try Player.online()
        player.play([Fixtures.push(2), .handed(Seq(2))])
        player.playTimer()
        player.play(.savingFailed("disk full"))
        #expect(Spelling.of(player.playTimer()) == "save somebody at 2, connect")
    }
}
