internal import FerryCore
internal import FerryIO
internal import FerryWire

/// One connection through the simulated network. The gateway holds a real socket or a line in memory; the network holds its
/// other end, and moves bytes between that and a simulated peer when it likes. Order is kept within a link.
final class Link {
    let number: Int
    /// Index of the device whose client made it; nil for backends and strangers.
    let device: Int?
    private let descriptor: Int32
    /// Where it is a line; both ends have one name there.
    private let memory: MemoryNetwork?
    /// The gateway's end. Another link may bear the number once that end is closed.
    let gatewayDescriptor: Int32
    private(set) var toGateway: [UInt8] = []
    private(set) var toPeer: [UInt8] = []
    /// Nothing moves any more, and neither side is told.
    var isSilent = false
    /// The peer does not read for now, and what the gateway sends stays in its socket.
    var isClogged = false { didSet { if isClogged { wasClogged = true } } }
    /// What left the gateway was seen late at least once: when it left is not known.
    private(set) var wasClogged = false
    /// The peer has said here what is not of its protocol.
    var wasAbused = false
    /// The step at which its output was first seen to be more than it may be.
    var fullAtStep: Int?
    /// Since when the gateway holds more than it should of what the peer does not read.
    var backedUpSince: Instant?
    /// The peer has closed; the gateway learns of it behind the bytes before it.
    private(set) var isPeerGone = false
    /// The gateway has been told that nothing more comes.
    private(set) var isEndTold = false
    /// The gateway's end is closed.
    private(set) var isGatewayGone = false
    private var isBroken = false
    private var isClosed = false

    var tapOut = FrameTap(bodyLimit: Limits.gatewayFrameBytes)
    var tapIn = FrameTap(bodyLimit: Limits.deviceFrameBytes)
    /// What the ledger knows of it.
    var facts = LinkFacts()

    init(number: Int, device: Int?, descriptor: Int32, gatewayDescriptor: Int32, memory: MemoryNetwork? = nil) {
        self.memory = memory
        self.number = number
        self.device = device
        self.descriptor = descriptor
        self.gatewayDescriptor = gatewayDescriptor
    }

    deinit { if !isClosed { closeEnd() } }

    /// What the gateway has sent since the last look.
    func drain() -> [UInt8] {
        guard !isGatewayGone, !isClosed, !isClogged else { return [] }
        let found = memory.map { read($0) } ?? readSocket()
        if !isPeerGone, !isBroken { toPeer.append(contentsOf: found) }
        return found
    }

    private func read(_ memory: MemoryNetwork) -> [UInt8] {
        let (bytes, isOver) = memory.peerTakes(descriptor)
        isGatewayGone = isOver
        return bytes
    }

    private func readSocket() -> [UInt8] {
        var found: [UInt8] = []
        withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 16) { buffer in
            while true {
                switch Socket.receive(descriptor, into: buffer) {
                case .moved(let count): found.append(contentsOf: buffer[..<count])
                case .wouldBlock: return
                case .ended, .failed:
                    isGatewayGone = true
                    return
                }
            }
        }
        return found
    }

    /// The peer sends.
    func send(_ bytes: [UInt8]) { if !isPeerGone, !isBroken { toGateway.append(contentsOf: bytes) } }

    /// The network hands the gateway up to `limit` bytes. Answers those that it took.
    func feed(_ limit: Int) -> ArraySlice<UInt8> {
        guard !isSilent, !isGatewayGone, !isEndTold else { return [] }
        let part = toGateway.prefix(limit)
        guard !part.isEmpty else {
            if isPeerGone { tellEnd() }
            return []
        }
        let count: Int
        if let memory {
            memory.peerSends(descriptor, part)
            count = part.count
        } else {
            guard case .moved(let moved) = part.withUnsafeBytes({ Socket.send(descriptor, $0) }) else { return [] }
            count = moved
        }
        let taken = part.prefix(count)
        toGateway.removeFirst(count)
        return taken
    }

    private func tellEnd() {
        isEndTold = true
        if let memory { memory.peerEnds(descriptor) } else { _ = Socket.shutdownWrite(descriptor) }
    }

    /// The network hands the peer up to `limit` bytes.
    func deliver(_ limit: Int) -> [UInt8] {
        guard !isSilent, !isPeerGone else { return [] }
        let part = Array(toPeer.prefix(limit))
        toPeer.removeFirst(part.count)
        return part
    }

    /// The peer has nothing more to read and the gateway has closed.
    var isOverForPeer: Bool { !isSilent && (isGatewayGone || isBroken) && toPeer.isEmpty }

    func peerCloses() {
        isPeerGone = true
        toPeer = []
    }

    /// The network breaks: what was under way is lost, both sides are told.
    func breakOff() {
        isClogged = false
        toGateway = []
        toPeer = []
        isSilent = false
        isBroken = true
        if !isEndTold, !isGatewayGone { tellEnd() }
    }

    var isFinished: Bool { isGatewayGone && (isPeerGone || isOverForPeer) }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        isGatewayGone = true
        closeEnd()
    }

    private func closeEnd() {
        if let memory { memory.peerCloses(descriptor) } else { Socket.close(descriptor) }
    }
}

/// What was seen on a device's link, as far as promises need it.
struct LinkFacts {
    var hasSession = false
    var hasSaidBye = false
    var isBackgroundFed = false
    var isFramed = true
    /// The last number that the client said in a login or `foreground`.
    var saidSeq = Seq.zero
    var saidEpoch = Epoch.none
    /// The client has said that it takes compressed payloads; the gateway has said that it sends them.
    var takesCompressed = false
    var isCompressionAgreed = false
    /// The last entry of this session.
    var lastSent = Seq.zero
    var received: Set<Int> = []
    var gapsTold = 0
    var wasClosedByFrame = false
    var closeCode: CloseCode?
    var pongs = 0
    /// The highest number that was acknowledged here.
    var acknowledged = Seq.zero
    /// Tokens that the device named here and that are not confirmed yet, in order; nil: that it has none.
    var claims: [Int?] = []
}
