internal import FerryCore
internal import FerryIO

/// The client's socket with what came and is not yet a frame, and what has not left.
struct ClientConnection {
    private let descriptor: Int32
    private var isConnecting = true
    private var inbox: [UInt8] = []
    private var outbox: [UInt8] = []
    private var isWaitingToWrite = false

    private static let readSize = 65_536

    init(to server: SocketAddress, _ poller: borrowing Poller, token: UInt64) throws(SystemError) {
        descriptor = try Socket.connect(to: server)
        do throws(SystemError) {
            try poller.add(descriptor, .writable, token: token)
        } catch {
            Socket.close(descriptor)
            throw error
        }
    }

    /// What an event of the socket came to.
    enum Progress {
        case nothing
        case connected
        /// Bytes are in the inbox.
        case received
        case lost(String)
    }

    mutating func progress(
        readable: Bool, hangup: Bool, _ poller: borrowing Poller, token: UInt64
    ) -> Progress {
        if isConnecting {
            return finishConnecting(poller, token: token).map { .lost($0.description) } ?? .connected
        }
        guard readable || hangup else { return .nothing }
        switch receive() {
        case .wouldBlock: return .nothing
        case .ended: return .lost("the gateway ended it")
        case .failed(let code): return .lost(SystemError("receive", code).description)
        case .moved: return .received
        }
    }

    /// The socket has turned writable: the connection is there, or the answer says why not.
    private mutating func finishConnecting(_ poller: borrowing Poller, token: UInt64) -> SystemError? {
        isConnecting = false
        let code = Socket.error(of: descriptor)
        if code != 0 { return SystemError("connect", code) }
        do throws(SystemError) { try poller.modify(descriptor, .readable, token: token) } catch { return error }
        return nil
    }

    private mutating func receive() -> Socket.Transfer {
        withUnsafeTemporaryAllocation(byteCount: Self.readSize, alignment: 1) { buffer in
            let transfer = Socket.receive(descriptor, into: buffer)
            if case .moved(let count) = transfer { inbox.append(contentsOf: buffer[..<count]) }
            return transfer
        }
    }

    /// Lends the received bytes out; nil when there are none.
    mutating func takeInbox() -> [UInt8]? {
        if inbox.isEmpty { return nil }
        defer { inbox = [] }
        return inbox
    }

    mutating func putBack(_ bytes: [UInt8]) { inbox = bytes }

    mutating func enqueue(_ bytes: [UInt8]) { outbox += bytes }

    /// Sends what can be sent now; the kernel's error number when the connection is broken.
    mutating func flush(_ poller: borrowing Poller, token: UInt64) -> Int32? {
        guard !isConnecting, !outbox.isEmpty || isWaitingToWrite else { return nil }
        if let code = sendSome() { return code }
        let mustWait = !outbox.isEmpty
        guard mustWait != isWaitingToWrite else { return nil }
        isWaitingToWrite = mustWait
        do throws(SystemError) {
            try poller.modify(descriptor, mustWait ? [.readable, .writable] : .readable, token: token)
        } catch {
            return error.code
        }
        return nil
    }

    private mutating func sendSome() -> Int32? {
        while !outbox.isEmpty {
            switch outbox.withUnsafeBytes({ Socket.send(descriptor, $0) }) {
            case .moved(let count): outbox.removeFirst(count)
            case .wouldBlock: return nil
            case .ended: return nil
            case .failed(let code): return code
            }
        }
        return nil
    }

    /// Sends the rest and waits for the gateway to hang up: closing with unread bytes would throw away, by a reset, what
    /// the gateway has not read yet.
    mutating func sayFarewell(until deadline: Instant, clock: WallClock) {
        guard !isConnecting, let poller = try? Poller() else { return }
        do throws(SystemError) { try poller.add(descriptor, [.readable, .writable], token: 1) } catch { return }
        while clock.now < deadline {
            if sendSome() != nil { return }
            if outbox.isEmpty {
                do throws(SystemError) { try poller.modify(descriptor, .readable, token: 1) } catch { return }
            }
            let left = Int32(clamping: max(1, (deadline - clock.now).inMilliseconds))
            guard poller.wait(milliseconds: left) > 0, poller.event(0).readable else { continue }
            inbox = []
            switch receive() {
            case .moved, .wouldBlock: continue
            case .ended, .failed: return
            }
        }
    }

    func close(_ poller: borrowing Poller) {
        poller.remove(descriptor)
        Socket.close(descriptor)
    }
}
