internal import FerryClientCore
internal import FerryCore
internal import FerryIO
internal import FerryWire
internal import Foundation
internal import Testing

private enum ProtocolSpec {
    static let folder: URL? = {
        var place = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        while place.path != "/" {
            let candidate = place.appendingPathComponent("protocol-spec")
            if FileManager.default.fileExists(atPath: candidate.appendingPathComponent("dialogues").path) {
                return candidate
            }
            place.deleteLastPathComponent()
        }
        return nil
    }()
}

/// Plays the gateway's part of `protocol-spec/dialogues` that a device can be tested with.
@Suite(.enabled(if: ProtocolSpec.folder != nil))
struct DialogueTests {
    @Test func `a client says what every dialogue expects`() throws {
        let folder = try #require(ProtocolSpec.folder).appendingPathComponent("dialogues")
        var played = 0
        for file in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() {
            guard file.hasSuffix(".json") else { continue }
            let data = try Data(contentsOf: folder.appendingPathComponent(file))
            let dialogue = try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
            guard (dialogue["runs"] as? [String])?.contains("device") == true else { continue }
            var stage = try Stage(file: file, given: dialogue["given"] as? String)
            for step in try #require(dialogue["steps"] as? [[String: Any]]) { try stage.play(step) }
            stage.end()
            played += 1
        }
        #expect(played >= 5)
    }

    @Test func `the client's limits are the registry's`() throws {
        let file = try #require(ProtocolSpec.folder).appendingPathComponent("registry/limits.json")
        let object = try #require(
            JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any])
        var registered: [String: Int] = [:]
        for row in try #require(object["limits"] as? [[String: Any]]) {
            registered[row["name"] as? String ?? ""] = row["value"] as? Int
        }
        let ours: [String: Int64] = [
            "clientHandshakeSeconds": ClientLimits.handshake.inMilliseconds / 1_000,
            "pongDeadlineSeconds": ClientLimits.answer.inMilliseconds / 1_000,
            "ackDelayMilliseconds": ClientLimits.ackDelay.inMilliseconds,
            "ackEveryMessages": Int64(ClientLimits.ackEvery),
            "backOffFirstMilliseconds": ClientLimits.backoffFirst.inMilliseconds,
            "backOffMaximumMilliseconds": ClientLimits.backoffMaximum.inMilliseconds,
            "backOffResetSeconds": ClientLimits.backoffReset.inMilliseconds / 1_000,
            "atOnceAgainSeconds": ClientLimits.atOnceAgain.inMilliseconds / 1_000,
            "retryAfterMaximumMilliseconds": ClientLimits.retryAfterMaximum.inMilliseconds,
        ]
        for (name, value) in ours { #expect(registered[name].map(Int64.init) == value, "\(name)") }
    }
}

/// One dialogue under way: a machine, its clock, and what it did that no step has named yet.
private struct Stage {
    let file: String
    var player: Player
    var sent: [DeviceFrame] = []
    var closes = 0
    var isConnected = false
    var variables: [String: String] = [:]

    init(file: String, given: String?) throws {
        self.file = file
        player = Player(try Fixtures.machine(hasIdentity: given != "nothing"))
        if given != "nothing" {
            player = Player(try Self.device())
            variables = ["$cid": Fixtures.cid.description, "$epoch": Fixtures.epoch.description]
        }
        if given == "session" {
            act(.started)
            act(Fixtures.challenge)
            act(Fixtures.welcome(isResumed: true))
            sent = []
        }
    }

    private static func device() throws -> ClientStateMachine {
        let record = ClientRecord(
            identity: Fixtures.identity, installationKey: .zero, epoch: Fixtures.epoch, lastSeq: .zero)
        let configuration = ClientConfiguration(
            appID: try Fixtures.appID(), wishes: AttachWishes(capabilities: .compressedPayloads))
        return ClientStateMachine(configuration: configuration, record: record)
    }

    mutating func play(_ step: [String: Any]) throws {
        if let milliseconds = step["advance"] as? Int {
            advance(.milliseconds(milliseconds))
        } else if step["closeExpected"] != nil {
            #expect(closes > 0, "\(file): the connection is still there")
            closes = 0
        } else if step["drop"] != nil {
            isConnected = false
            act(.connectionLost("dropped"))
        } else if let frame = step["frame"] as? [String: Any] {
            if step["from"] as? String == "device" { try expect(frame) } else { try receive(frame) }
        } else {
            #expect(step["accept"] != nil, "\(file): a step that this runner does not know")
        }
    }

    func end() {
        #expect(sent.allSatisfy { if case .ack = $0 { true } else { false } }, "\(file): said more: \(sent)")
        #expect(closes == 0, "\(file): ended the connection")
    }

    private mutating func act(_ event: ClientEvent) {
        for action in player.play(event) {
            switch action {
            case .connect:
                isConnected = true
                act(.connected)
            case .send(let frame), .prove(let frame): sent.append(frame)
            case .hand(let push): act(.handed(push.seq))
            case .handGap(let gap): act(.handed(gap.seq))
            case .close:
                closes += 1
                isConnected = false
            case .save, .tell: break
            }
        }
    }

    private mutating func advance(_ duration: Duration) {
        let end = player.now + duration
        while let deadline = player.machine.deadline, deadline <= end {
            player.now = max(player.now, deadline)
            act(.timerFired)
        }
        player.now = end
    }

    private mutating func expect(_ frame: [String: Any]) throws {
        if !isConnected { act(.started) }
        if !isConnected, let deadline = player.machine.deadline {
            player.now = max(player.now, deadline)
            act(.timerFired)
        }
        let type = frame["type"] as? String
        while let next = sent.first {
            sent.removeFirst()
            let fields = Self.fields(of: next)
            let named = frame.filter { $0.key != "type" }
            let matches =
                fields["type"] == type
                && named.allSatisfy { name, value in
                    guard let ours = fields[name] else { return false }
                    return isSame(ours, Self.text(value))
                }
            if matches {
                for (name, value) in named where Self.text(value).hasPrefix("$") {
                    variables[Self.text(value)] = fields[name]
                }
                return
            }
            guard fields["type"] == "ack" else {
                Issue.record("\(file): expected \(frame), got \(fields)")
                return
            }
        }
        Issue.record("\(file): expected \(frame), got nothing")
    }

    private func isSame(_ ours: String, _ theirs: String) -> Bool {
        guard theirs.hasPrefix("$") else { return ours == theirs }
        return variables[theirs].map { $0 == ours } ?? true
    }

    private static func text(_ value: Any) -> String {
        value as? String ?? (value as? NSNumber)?.stringValue ?? ""
    }

    private static func fields(of frame: DeviceFrame) -> [String: String] {
        switch frame {
        case .hello(let hello): ["type": "hello", "version": "\(hello.version)"]
        case .login(let login):
            [
                "type": "login", "cid": "\(login.cid)", "generation": "\(login.generation)", "epoch": "\(login.epoch)",
                "lastSeq": "\(login.lastSeq)", "capabilities": "\(login.wishes.capabilities.rawValue)",
            ]
        case .register(let register):
            [
                "type": "register", "installationKey": register.installationKey.hex,
                "keepAlive": "\(register.wishes.keepAlive)", "window": "\(register.wishes.window)",
            ]
        case .ack(let ack): ["type": "ack", "seq": "\(ack.seq)"]
        case .ping: ["type": "ping"]
        case .pong: ["type": "pong"]
        case .background: ["type": "background"]
        case .foreground(let foreground): ["type": "foreground", "lastSeq": "\(foreground.lastSeq)"]
        case .bye: ["type": "bye"]
        case .deviceToken: ["type": "device-token"]
        case .unknownSkippable: [:]
        }
    }

    /// A number of a frame that the gateway sends; a variable without a value gets the next one above all before it.
    private mutating func number(_ frame: [String: Any], _ name: String, default value: UInt64 = 0) -> UInt64 {
        guard let given = frame[name].map(Self.text) else { return value }
        guard given.hasPrefix("$") else { return UInt64(given) ?? value }
        let known =
            variables[given] ?? "\((variables.values.compactMap { $0.count < 10 ? UInt64($0) : nil }.max() ?? 0) + 1)"
        variables[given] = known
        return UInt64(known) ?? value
    }

    private mutating func receive(_ frame: [String: Any]) throws {
        let gatewayFrame: GatewayFrame
        switch frame["type"] as? String {
        case "challenge":
            gatewayFrame = .challenge(ChallengeFrame(version: number(frame, "version", default: 1), nonce: .zero))
        case "registered":
            gatewayFrame = .registered(RegisteredFrame(cid: Fixtures.cid, generation: 1, secret: .zero))
        case "welcome":
            gatewayFrame = .welcome(
                WelcomeFrame(
                    sessionID: SessionID(rawValue: 1), epoch: Fixtures.epoch,
                    isResumed: number(frame, "flags") & 1 == 1,
                    compressesPayloads: number(frame, "flags") & 2 == 2,
                    keptMessages: number(frame, "keptMessages")))
        case "push":
            gatewayFrame = .push(
                PushFrame(
                    seq: Seq(number(frame, "seq")), flags: .init(rawValue: UInt8(number(frame, "flags"))),
                    messageID: MessageID(Identifier128(high: 0, low: 1)), taskID: "t",
                    payload: Hexadecimal.decode(frame["payload"] as? String ?? "") ?? []))
        case "gap":
            let seq = Seq(number(frame, "seq"))
            gatewayFrame = .gap(GapFrame(seq: seq, upTo: seq, count: number(frame, "count")))
        case "ping": gatewayFrame = .ping
        case "pong": gatewayFrame = .pong
        case "close":
            gatewayFrame = .close(
                CloseFrame(
                    code: CloseCode(rawValue: UInt16(clamping: number(frame, "code"))),
                    text: frame["text"] as? String, retryAfter: number(frame, "retryAfter")))
        default:
            Issue.record("\(file): a frame that this runner does not know")
            return
        }
        act(.bytesReceived)
        act(player.machine.event(for: gatewayFrame, isProven: true, inflate: Inflation.inflate))
        act(.readingEnded)
    }
}
