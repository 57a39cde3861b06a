internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStore
internal import FerryWire

/// One socket, as a trivial value in a shard's slab.
struct Connection: BitwiseCopyable {
    enum Kind: UInt8, BitwiseCopyable {
        case free
        /// A device before its welcome; its handshake is beside the slab.
        case handshake
        case device
        /// A backend; its decoder and open answers are beside the slab.
        case http
        /// A backend's link; its machine is beside the slab.
        case link
    }

    // In this order nothing is padded.

    /// What came of a frame that is not whole yet.
    var input = ByteBuffer()
    /// What the kernel has not taken yet.
    var output = ByteBuffer()
    var session = SessionStateMachine.closed
    /// Counts the lives of this slot, so that an event of a former life is known for what it is.
    var generation: UInt32 = 0
    /// Devices: index in the device table, -1 when the session is no longer this connection's.
    var device: Int32 = -1
    /// What of both buffers is in the shard's sum.
    var countedBytes: Int32 = 0
    var peer = SocketAddress(address: 0, port: 0)
    private var flags: Flags = []
    var kind = Kind.free
    var transport = Transport(descriptor: -1)
    private var writes: UInt8 = 0
    /// In seconds, the low half.
    private var writesSince: UInt16 = 0

    private struct Flags: OptionSet, BitwiseCopyable {
        let rawValue: UInt8
        static let dirty = Self(rawValue: 1)
        static let closing = Self(rawValue: 2)
        static let lingering = Self(rawValue: 4)
        static let readPaused = Self(rawValue: 8)
        static let streamHeld = Self(rawValue: 16)
        static let takesCompressed = Self(rawValue: 32)
        static let takesTyped = Self(rawValue: 64)
    }

    private subscript(flag: Flags) -> Bool {
        get { flags.contains(flag) }
        set { if newValue { flags.insert(flag) } else { flags.remove(flag) } }
    }
}

extension Connection {
    /// In the list of connections to flush at the end of the tick.
    var isDirty: Bool {
        get { self[.dirty] }
        set { self[.dirty] = newValue }
    }

    /// To be closed once the output had its chance.
    var isClosing: Bool {
        get { self[.closing] }
        set { self[.closing] = newValue }
    }

    /// The last word is out; what the peer still sends is thrown away until it closes too, for a while. A close with bytes
    /// unread would be a reset, and the peer might never see that last word.
    var isLingering: Bool {
        get { self[.lingering] }
        set { self[.lingering] = newValue }
    }

    /// Nothing is read for now: its answers wait (backends that send without reading).
    var isReadPaused: Bool {
        get { self[.readPaused] }
        set { self[.readPaused] = newValue }
    }

    /// Devices: the log is not read on until the output is below the high-water mark.
    var isStreamHeld: Bool {
        get { self[.streamHeld] }
        set { self[.streamHeld] = newValue }
    }

    /// Devices: login and welcome have agreed on compressed payloads.
    var takesCompressed: Bool {
        get { self[.takesCompressed] }
        set { self[.takesCompressed] = newValue }
    }

    /// Devices: the client takes every kind of content, not only transmissions.
    var takesTyped: Bool {
        get { self[.takesTyped] }
        set { self[.takesTyped] = newValue }
    }

    /// Devices: one more frame of this connection is to be journalled. Whether it is among the first `limit` (below 255) of a
    /// minute that began with the first of them: that bounds what one device can make the gateway write.
    mutating func mayWrite(now: Instant, limit: UInt8) -> Bool {
        let seconds = UInt16(truncatingIfNeeded: now.milliseconds / 1_000)
        if writes == 0 || seconds &- writesSince >= 60 {
            writesSince = seconds
            writes = 0
        }
        writes = min(writes, limit) + 1
        return writes <= limit
    }
}

/// The transport stage: what of a connection depends on how its bytes travel. Plain TCP wants to read always, and to write
/// while bytes are unsent; TLS will have its own reasons for either. `Shard+Transport` performs it.
struct Transport: BitwiseCopyable {
    /// Of a socket; below −1 the name of a line of the shard's `MemoryNetwork`.
    let descriptor: Int32
    private(set) var wantsWrite = false

    init(descriptor: Int32) { self.descriptor = descriptor }

    var isInMemory: Bool { descriptor < -1 }

    /// A send of `count` bytes had this result. Afterwards `wantsWrite` says whether the poller must tell when there is room.
    mutating func sent(_ count: Int, _ result: Socket.Transfer) {
        switch result {
        case .moved(let moved): wantsWrite = moved < count
        case .wouldBlock: wantsWrite = true
        case .ended, .failed: wantsWrite = false
        }
    }

    /// Nothing will be sent any more. A socket that is shut for writing always says that it has room.
    mutating func endWriting() { wantsWrite = false }
}
