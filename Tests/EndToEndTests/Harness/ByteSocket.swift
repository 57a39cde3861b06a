private import Dispatch
internal import FerryIO
private import Glibc

/// A connection to the gateway, for tests that want to decide about every byte.
final class ByteSocket {
    private let descriptor: Int32
    private let inbox = Inbox<[UInt8]>()
    private let queue = DispatchQueue(label: "socket")
    private var reader: Source?
    private var isClosed = false

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
        startReading()
    }

    deinit { close() }

    /// A descriptor of its own for each source: it may be closed only when its source has let go of it.
    private func source(writes: Bool, _ body: @escaping @Sendable (Int32, _ cancel: () -> Void) -> Void) -> Source {
        let copy = dup(descriptor)
        let handle =
            writes
            ? Source(DispatchSource.makeWriteSource(fileDescriptor: copy, queue: queue))
            : Source(DispatchSource.makeReadSource(fileDescriptor: copy, queue: queue))
        handle.start(copy, body)
        return handle
    }

    func startReading() {
        let inbox = inbox
        reader = source(writes: false) { descriptor, cancel in
            var chunk = [UInt8](repeating: 0, count: 65_536)
            switch chunk.withUnsafeMutableBytes({ Socket.receive(descriptor, into: $0) }) {
            case .moved(let count): inbox.put(Array(chunk[..<count]))
            case .wouldBlock: break
            case .ended, .failed:
                inbox.end()
                cancel()
            }
        }
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        shutdown(descriptor, Int32(SHUT_RDWR))
        Socket.close(descriptor)
        reader?.cancel()
    }

    /// What the gateway sends stays in the kernel from now on.
    func stopReading() {
        reader?.cancel()
        reader = nil
    }

    /// Says that nothing more will be sent.
    func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Returns when the kernel has taken all; quietly when the connection is gone.
    func send(_ bytes: [UInt8]) async throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            switch rest.withUnsafeBytes({ Socket.send(descriptor, $0) }) {
            case .moved(let count): rest = rest.dropFirst(count)
            case .wouldBlock: try await becomeWritable()
            case .ended, .failed: return
            }
        }
    }

    private func becomeWritable() async throws {
        let ready = Inbox<Bool>()
        let source = source(writes: true) { _, cancel in
            ready.put(true)
            cancel()
        }
        defer { source.cancel() }
        guard case .item = await ready.next(within: patience) else { throw Unexpected("the gateway takes no bytes") }
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

/// A dispatch source whose descriptor is closed after it has been cancelled.
private final class Source: @unchecked Sendable {
    // Dispatch sources may be used from any thread; only the existential type does not say so.
    private let source: any DispatchSourceProtocol
    init(_ source: any DispatchSourceProtocol) { self.source = source }

    func start(_ descriptor: Int32, _ body: @escaping @Sendable (Int32, _ cancel: () -> Void) -> Void) {
        source.setEventHandler { @Sendable [weak self] in body(descriptor) { self?.cancel() } }
        source.setCancelHandler { @Sendable in Socket.close(descriptor) }
        source.resume()
    }

    func cancel() { source.cancel() }
}
