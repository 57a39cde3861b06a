internal import FerryIO
private import Glibc

/// A connection to the gateway, for tests that want to decide about every byte.
final class ByteSocket {
    private let descriptor: Int32
    private let inbox = Inbox<[UInt8]>()
    private var reader: SocketReader?
    private var isClosed = false
    /// Each byte leaves by itself.
    var sendsSingleBytes = false

    /// `hasSmallBuffer`: the kernel takes as little as it can for a reader that does not read.
    init(to address: SocketAddress, hasSmallBuffer: Bool = false) async throws {
        descriptor = try Socket.connect(to: address)
        if hasSmallBuffer {
            var size: Int32 = 1
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        try await becomeWritable()
        let code = Socket.error(of: descriptor)
        guard code == 0 else {
            Socket.close(descriptor)
            isClosed = true
            throw SystemError("connect to \(address)", code)
        }
        reader = try SocketReader(descriptor, inbox)
    }

    deinit { close() }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        stopReading()
        Socket.close(descriptor)
    }

    /// What the gateway sends stays in the kernel from now on.
    func stopReading() {
        reader?.stop()
        reader = nil
    }

    /// Says that nothing more will be sent.
    func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Returns when the kernel has taken all; quietly when the connection is gone.
    func send(_ bytes: [UInt8]) async throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let next = sendsSingleBytes ? rest.prefix(1) : rest
            switch next.withUnsafeBytes({ Socket.send(descriptor, $0) }) {
            case .moved(let count): rest = rest.dropFirst(count)
            case .wouldBlock: try await becomeWritable()
            case .ended, .failed: return
            }
        }
    }

    /// Sends what the kernel takes now; false when it takes nothing.
    func sendSome(_ rest: inout ArraySlice<UInt8>) -> Bool {
        guard case .moved(let count) = rest.withUnsafeBytes({ Socket.send(descriptor, $0) }), count > 0 else {
            return false
        }
        rest = rest.dropFirst(count)
        return true
    }

    private func becomeWritable() async throws {
        let deadline = ContinuousClock.now + patience
        var question = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        while poll(&question, 1, 0) == 0 {
            guard ContinuousClock.now < deadline else { throw Unexpected("the gateway takes no bytes") }
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    /// The next bytes that came; nil at the end of the connection.
    func receive(within patience: Duration = patience) async throws -> [UInt8]? {
        switch await inbox.next(within: patience) {
        case .item(let bytes): return bytes
        case .ended: return nil
        case .late: throw Unexpected("nothing came in time")
        }
    }
}

/// A thread that waits for a socket's bytes, so that no test's thread has to.
private final class SocketReader {
    private let stopping: Mailbox<Bool>
    private let thread: OSThread

    init(_ descriptor: Int32, _ inbox: Inbox<[UInt8]>) throws {
        stopping = try Mailbox<Bool>()
        thread = try Self.start(descriptor, stopping, inbox)
    }

    private static func start(
        _ descriptor: Int32, _ stopping: Mailbox<Bool>, _ inbox: Inbox<[UInt8]>
    ) throws -> OSThread {
        try OSThread(name: "reader") {
            read(descriptor, until: stopping, inbox)
            inbox.end()
        }
    }

    /// The descriptor may be closed afterwards.
    func stop() {
        stopping.post(true)
        thread.join()
    }

    private static func read(_ descriptor: Int32, until stopping: Mailbox<Bool>, _ inbox: Inbox<[UInt8]>) {
        guard let poller = try? Poller(), (try? poller.add(descriptor, .readable, token: 0)) != nil,
            (try? poller.add(stopping.descriptor, .readable, token: 1)) != nil
        else { return }
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            for position in 0..<poller.wait(milliseconds: -1) {
                guard poller.event(position).token == 0 else { return }
                switch chunk.withUnsafeMutableBytes({ Socket.receive(descriptor, into: $0) }) {
                case .moved(let count): inbox.put(Array(chunk[..<count]))
                case .wouldBlock: break
                case .ended, .failed: return
                }
            }
        }
    }
}
