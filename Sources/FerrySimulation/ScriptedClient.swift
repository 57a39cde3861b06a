internal import FerryClientCore
internal import FerryCore
internal import FerryIO
internal import FerryWire

/// One run of a client program: the real client's decisions, with a link of the simulated network for a socket, and with an
/// app and a state file of its own. Two of them may play one device.
final class ScriptedClient {
    let device: Int
    private let world: World
    private(set) var machine: ClientStateMachine
    private static let cipher = HandshakeProofs.Cipher(
        mac: { Cryptography.hmacSHA256(key: $0, $1) }, isEqual: { Cryptography.isEqual($0, $1) })
    private var proofs: HandshakeProofs
    private(set) var link: Link?
    /// When the connection is there, or fails; nil when none is being made.
    private var connectsAtStep: Int?
    private var inbox: [UInt8] = []
    /// What the app works on; it has a message when the time has come.
    private var atWork: [(seq: Seq, until: Instant)] = []
    /// Reads nothing and does nothing, as a stopped process.
    var isFrozen = false
    /// Its state file, and all that was ever in it.
    private(set) var saved: ClientRecord
    private(set) var history: [ClientRecord] = []
    /// Everything handed to the app, in order.
    private var handed: [(number: Int, seq: Seq)] = []
    /// Posts that may come once more, since the state was put back to before them.
    private var excused: [Int: Int] = [:]
    private var handedTimes: [Int: Int] = [:]

    init(device: Int, record: ClientRecord, acknowledges: Bool, world: World) {
        self.device = device
        self.world = world
        saved = record
        machine = ClientStateMachine(
            configuration: Self.configuration(device, acknowledges: acknowledges, world), record: record)
        proofs = HandshakeProofs(appSecret: World.appSecret, cipher: Self.cipher)
    }

    private static func configuration(_ device: Int, acknowledges: Bool, _ world: World) -> ClientConfiguration {
        ClientConfiguration(
            appID: world.app,
            wishes: AttachWishes(
                keepAlive: UInt64(world.keepAlive),
                capabilities: world.takesCompressed(device) ? .compressedPayloads : []),
            deviceToken: world.token(of: device).map { .set($0) }, acknowledges: acknowledges)
    }

    /// The program ends and another begins, with what its state file holds, or held at some time before.
    func restart(from record: ClientRecord, acknowledges: Bool) {
        drop()
        for (number, seq) in handed where seq > record.lastSeq { excused[number] = handedTimes[number, default: 0] }
        saved = record
        atWork = []
        machine = ClientStateMachine(
            configuration: Self.configuration(device, acknowledges: acknowledges, world), record: record)
        handle(.started)
    }

    // MARK: - Events

    func handle(_ event: ClientEvent) {
        let actions = machine.handle(event, now: world.clock.now, using: &world.dice)
        for action in actions {
            if let failure = perform(action) {
                handle(failure)
                return
            }
        }
    }

    private func perform(_ action: ClientAction) -> ClientEvent? {
        switch action {
        case .connect:
            drop()
            proofs = HandshakeProofs(appSecret: World.appSecret, cipher: Self.cipher)
            connectsAtStep = world.trace.step + world.dice.below(20)
        case .send(let frame):
            if case .hello(let hello) = frame { proofs.sent(hello) }
            link?.send(frame.encoded())
        case .prove(let frame):
            guard let proven = proofs.prove(frame, deviceSecret: machine.record.identity?.secret.bytes) else { break }
            link?.send(proven.encoded())
        case .save(let record):
            guard !world.dice.chance(world.isHealing ? 0 : 3) else { return .savingFailed("no room") }
            if record != saved { history.append(saved) }
            saved = record
        case .hand(let push): hand(push)
        case .handGap(let gap):
            world.ledger.gapHanded(gap, device: device)
            handle(.handed(gap.seq))
        case .close: drop()
        case .tell(let notice): take(notice)
        }
        return nil
    }

    private func take(_ notice: ClientNotice) {
        switch notice {
        case .registered(let cid), .online(let cid, _): world.ledger.devices[device].cid = cid
        case .tokenSaved, .offline, .stopped: break
        }
    }

    private func hand(_ push: PushFrame) {
        if let number = Post.number(inPayload: push.payload) {
            let times = handedTimes[number, default: 0]
            world.check { () throws(Violation) in
                try world.ledger.handed(
                    push, device: device, isRepeat: times > 0, isExcused: times <= excused[number, default: 0])
            }
            handedTimes[number] = times + 1
            handed.append((number, push.seq))
        }
        let time = world.isHealing ? 0 : world.scenario.handlingTime
        guard time > 0 else { return handle(.handed(push.seq)) }
        atWork.append((push.seq, world.clock.now + .milliseconds(world.dice.below(time))))
    }

    /// Time has passed, or a turn has come.
    func turn() {
        guard !isFrozen else { return }
        if let step = connectsAtStep, world.trace.step >= step { finishConnecting() }
        while let first = atWork.first, first.until <= world.clock.now {
            atWork.removeFirst()
            handle(.handed(first.seq))
        }
        if let deadline = machine.deadline, world.clock.now >= deadline { handle(.timerFired) }
        receive()
    }

    private func finishConnecting() {
        connectsAtStep = nil
        guard let link = world.connect(device: device) else { return handle(.connectionLost("refused")) }
        self.link = link
        handle(.connected)
    }

    private func receive() {
        guard let link else { return }
        inbox.append(contentsOf: link.deliver(world.portion()))
        if !inbox.isEmpty { handle(.bytesReceived) }
        takeFrames(of: link)
        handle(.readingEnded)
        guard self.link === link, link.isOverForPeer else { return }
        drop()
        handle(.connectionLost("ended"))
    }

    private func takeFrames(of current: Link) {
        while link === current {
            var event: ClientEvent?
            var consumed = 0
            inbox.withUnsafeBytes { bytes in
                switch FrameSplitter.split(bytes, bodyLimit: Limits.gatewayFrameBytes) {
                case .incomplete: return
                case .tooLarge, .malformed: event = .malformedReceived(WireError(.protocolError, "no frame"))
                case .frame(let type, let body, let count):
                    consumed = count
                    event = read(type, body)
                }
            }
            guard let event else { return }
            inbox.removeFirst(consumed)
            handle(event)
        }
    }

    private func read(_ type: UInt8, _ body: UnsafeRawBufferPointer) -> ClientEvent {
        do throws(WireError) {
            let frame = try GatewayFrame.decode(type: type, body: body)
            if case .challenge = frame { proofs.received(challenge: body) }
            let isProven = proofs.isProven(frame, body: body, deviceSecret: machine.record.identity?.secret.bytes)
            return machine.event(for: frame, isProven: isProven, inflate: Inflation.inflate)
        } catch {
            return .malformedReceived(error)
        }
    }

    private func drop() {
        link?.peerCloses()
        link = nil
        inbox = []
        connectsAtStep = nil
    }

    /// The phone leaves one network for another: the old link is dead, and the gateway does not know.
    func switchNetwork() {
        guard let link else { return }
        link.isSilent = true
        drop()
        handle(.connectionLost("network changed"))
        handle(.enteredForeground)
    }

    /// Says what the client itself might never say.
    func say(_ bytes: [UInt8]) { link?.send(bytes) }

    var isAttached: Bool { if case .attached = machine.phase { true } else { false } }
    var isSettled: Bool { atWork.isEmpty && saved == machine.record }
}
