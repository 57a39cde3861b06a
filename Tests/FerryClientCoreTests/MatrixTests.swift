internal import FerryClientCore
internal import FerryCore
internal import FerryWire
internal import Foundation
internal import Testing

/// Every phase × every event, as a table beside this file. A change of behaviour shows in its diff. After a change that is
/// meant, run the test once with FERRY_UPDATE_MATRIX=1 in the environment and review what it wrote.
struct MatrixTests {
    private static let table = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("ClientStateMachine.matrix.txt")

    private func states() throws -> [(String, Player)] {
        let known = Player(try Fixtures.machine(hasIdentity: true))
        let new = Player(try Fixtures.machine(hasIdentity: false))
        func after(_ player: Player, _ events: [ClientEvent]) -> Player {
            var player = player
            player.play(events)
            return player
        }
        let online = try Player.online()
        return [
            ("idle", known),
            ("idle, hidden", after(known, [.enteredBackground])),
            ("waiting", after(known, [.started, .connectionLost("x")])),
            ("waiting as asked", after(known, [.started, .connected, Fixtures.close(.overloaded, retryAfter: 5_000)])),
            ("connecting", after(known, [.started])),
            ("awaitingChallenge, new", after(new, [.started, .connected])),
            ("awaitingChallenge, known", after(known, [.started, .connected])),
            ("awaitingRegistered", after(new, [.started, .connected, Fixtures.challenge])),
            ("awaitingWelcome, new", after(new, [.started, .connected, Fixtures.challenge, Fixtures.registered()])),
            ("awaitingWelcome, known", after(known, [.started, .connected, Fixtures.challenge])),
            ("online", online),
            ("online, handing 2", after(online, [Fixtures.push(2)])),
            ("online, handed 2", after(online, [Fixtures.push(2), .handed(Seq(2))])),
            ("background", after(online, [.enteredBackground])),
            ("background, handed 2", after(online, [.enteredBackground, Fixtures.push(2), .handed(Seq(2))])),
            ("resuming", after(online, [.enteredBackground, .enteredForeground])),
            ("background, resuming", after(online, [.enteredBackground, .enteredForeground, .enteredBackground])),
            ("asleep after 4000", after(online, [Fixtures.close(.takenOver)])),
            ("asleep, hidden", after(online, [.enteredBackground, .connectionLost("x")])),
            ("stopped", after(online, [.stopRequested])),
        ]
    }

    private func events() throws -> [(String, ClientEvent)] {
        let error = WireError(.protocolError, "x")
        let token = try #require(PushToken(environment: .sandbox, bytes: [1]))
        return [
            ("started", .started), ("connected", .connected), ("connectionLost", .connectionLost("x")),
            ("bytesReceived", .bytesReceived), ("readingEnded", .readingEnded),
            ("malformedReceived", .malformedReceived(error)),
            ("unpackingFailed", .unpackingFailed(error)),
            ("challenge", Fixtures.challenge),
            (
                "challenge of version 2",
                .frameReceived(.challenge(ChallengeFrame(version: 2, nonce: .zero)), isProven: false)
            ),
            ("registered", Fixtures.registered()), ("registered, unproven", Fixtures.registered(isProven: false)),
            ("welcome", Fixtures.welcome(isResumed: true)),
            ("welcome, not resumed", Fixtures.welcome(isResumed: false)),
            ("welcome, unproven", Fixtures.welcome(isResumed: true, isProven: false)),
            ("push 1", Fixtures.push(1)), ("push 2", Fixtures.push(2)), ("push 3", Fixtures.push(3)),
            ("gap 3", Fixtures.gap(3)), ("ping", .frameReceived(.ping, isProven: false)),
            ("pong", .frameReceived(.pong, isProven: false)), ("resumed", Fixtures.resumed(true)),
            ("resumed, not resumed", Fixtures.resumed(false)),
            ("tokenSaved", .frameReceived(.tokenSaved(TokenSavedFrame(environment: nil)), isProven: false)),
            ("unknown type", .frameReceived(.unknownSkippable(0x3f), isProven: false)),
            ("close 1001", Fixtures.close(.overloaded)),
            ("close 1001 retry", Fixtures.close(.overloaded, retryAfter: 9_000)),
            ("close 2000", Fixtures.close(.logInAgain)), ("close 3000", Fixtures.close(.unknownDevice)),
            ("close 4000", Fixtures.close(.takenOver)), ("close 5000", Fixtures.close(.protocolError)),
            ("close 9999", Fixtures.close(CloseCode(rawValue: 9999))), ("handed 2", .handed(Seq(2))),
            ("handed 9", .handed(Seq(9))), ("timer, early", .timerFired), ("timer, in time", .timerFired),
            ("savingFailed", .savingFailed("x")), ("enteredForeground", .enteredForeground),
            ("enteredBackground", .enteredBackground), ("deviceTokenChanged", .deviceTokenChanged(.set(token))),
            ("stopRequested", .stopRequested),
        ]
    }

    @Test func `every event in every phase does what the reviewed table says`() throws {
        var lines: [String] = []
        for (state, player) in try states() {
            lines.append("## \(state)")
            for (name, event) in try events() {
                var player = player
                let actions = name == "timer, in time" ? player.playTimer() : player.play(event)
                let phase = Spelling.of(player.machine.phase, now: player.now)
                lines.append("\(name) -> \(phase): \(Spelling.of(actions))")
            }
            lines.append("")
        }
        let text = lines.joined(separator: "\n")
        if ProcessInfo.processInfo.environment["FERRY_UPDATE_MATRIX"] != nil {
            try text.write(to: Self.table, atomically: true, encoding: .utf8)
        }
        let reviewed = try String(contentsOf: Self.table, encoding: .utf8).split(
            separator: "\n", omittingEmptySubsequences: false)
        #expect(reviewed.count == lines.count)
        for (ours, theirs) in zip(lines, reviewed) where ours != theirs {
            Issue.record("the table says \"\(theirs)\", the machine \"\(ours)\"")
        }
    }
}
