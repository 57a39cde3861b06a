private import FerryIO
internal import Testing

/// The system's sockets over loopback. Whatever is waited for is waited for by the poller.
struct SocketTests {
    private static let patience: Int32 = 10_000

    /// A listener on a port that the kernel chose, and pairs of connected sockets.
    private final class Loopback {
        let listener: Int32
        let port: UInt16

        init() throws {
            listener = try Socket.listen(SocketAddress(address: SocketAddress.loopback, port: 0))
            port = try Socket.localPort(listener)
        }

        deinit { Socket.close(listener) }

        var address: SocketAddress { SocketAddress(address: SocketAddress.loopback, port: port) }

        typealias Readiness = (readable: Bool, writable: Bool, hangup: Bool)

        /// Waits until `descriptor` is ready for `interest`; what happened to it.
        func waitFor(_ descriptor: Int32, _ interest: Poller.Interest) throws -> Readiness {
            let poller = try Poller()
            try poller.add(descriptor, interest, token: 9)
            let count = poller.wait(milliseconds: SocketTests.patience)
            guard count == 1 else { throw SystemError("wait for a descriptor", 110) }
            let event = poller.event(0)
            #expect(event.token == 9)
            return (event.readable, event.writable, event.hangup)
        }

        func pair() throws -> (client: Int32, server: Int32) {
            let client = try Socket.connect(to: address)
            _ = try waitFor(listener, .readable)
            let accepted = try Socket.accept(listener).get()
            #expect(accepted.peer.isLoopback)
            #expect(try accepted.peer.port == Socket.localPort(client))
            #expect(try waitFor(client, .writable).writable)
            #expect(Socket.error(of: client) == 0)
            return (client, accepted.descriptor)
        }
    }

    private static func receive(_ descriptor: Int32, _ capacity: Int = 65_536) -> (
        transfer: Socket.Transfer, bytes: [UInt8]
    ) {
        var bytes = [UInt8](repeating: 0, count: capacity)
        let transfer = bytes.withUnsafeMutableBytes { Socket.receive(descriptor, into: $0) }
        if case .moved(let count) = transfer { return (transfer, Array(bytes.prefix(count))) }
        return (transfer, [])
    }

    private static func send(_ descriptor: Int32, _ bytes: [UInt8]) -> Socket.Transfer {
        bytes.withUnsafeBytes { Socket.send(descriptor, $0) }
    }

    @Test func `Nobody waiting is not an error, and bytes arrive as they were sent`() throws {
        let loopback = try Loopback()
        guard case .failure(let error) = Socket.accept(loopback.listener) else {
            Issue.record("accepted nobody")
            return
        }
        #expect(error.code == ErrorNumber.again)
        let (client, server) = try loopback.pair()
        #expect(Self.receive(server).transfer == .wouldBlock)
        #expect(Self.send(client, [1, 2, 3]) == .moved(3))
        #expect(try loopback.waitFor(server, .readable).readable)
        #expect(Self.receive(server).bytes == [1, 2, 3])
        #expect(Self.receive(server).transfer == .wouldBlock)
        Socket.close(client)
        Socket.close(server)
    }

    @Test func `A peer that closes ends the stream, after its last bytes`() throws {
        let loopback = try Loopback()
        let (client, server) = try loopback.pair()
        #expect(Self.send(client, [7]) == .moved(1))
        Socket.close(client)
        #expect(try loopback.waitFor(server, .readable).readable)
        #expect(Self.receive(server).bytes == [7])
        #expect(try loopback.waitFor(server, .readable).readable)
        #expect(Self.receive(server).transfer == .ended)
        Socket.close(server)
    }

    @Test func `A peer that closes with bytes unread has broken the connection`() throws {
        let loopback = try Loopback()
        let (client, server) = try loopback.pair()
        #expect(Self.send(server, [1]) == .moved(1))
        #expect(try loopback.waitFor(client, .readable).readable)
        Socket.close(client)
        let event = try loopback.waitFor(server, .readable)
        #expect(event.readable && event.hangup)
        let connectionReset: Int32 = 104
        #expect(Self.receive(server).transfer == .failed(connectionReset))
        let brokenPipe: Int32 = 32
        #expect(Self.send(server, [1]) == .failed(brokenPipe))
        Socket.close(server)
    }

    @Test func `A peer that does not read fills the socket, and room comes back when it does`() throws {
        let loopback = try Loopback()
        let (client, server) = try loopback.pair()
        let block = [UInt8](repeating: 5, count: 262_144)
        var sent = 0
        var transfer = Socket.Transfer.moved(0)
        while case .moved(let count) = transfer {
            sent += count
            transfer = Self.send(server, block)
        }
        #expect(transfer == .wouldBlock)
        let poller = try Poller()
        try poller.add(server, .writable, token: 1)
        #expect(poller.wait(milliseconds: 0) == 0)
        var received = 0
        while received < sent {
            #expect(try loopback.waitFor(client, .readable).readable)
            while case .moved(let count) = Self.receive(client, 1 << 20).transfer { received += count }
        }
        #expect(received == sent)
        #expect(try loopback.waitFor(server, .writable).writable)
        Socket.close(client)
        Socket.close(server)
    }

    @Test func `A refused connection says so, and a taken port too`() throws {
        let loopback = try Loopback()
        #expect(throws: SystemError.self) { try Socket.listen(loopback.address) }
        // A socket that is bound and does not listen holds a port that nobody else gets, and refuses.
        let (bound, server) = try loopback.pair()
        let refused = SocketAddress(address: SocketAddress.loopback, port: try Socket.localPort(bound))
        let client = try Socket.connect(to: refused)
        _ = try loopback.waitFor(client, .writable)
        let connectionRefused: Int32 = 111
        #expect(Socket.error(of: client) == connectionRefused)
        for descriptor in [client, bound, server] { Socket.close(descriptor) }
        let error = SystemError("listen on \(loopback.address)", -ErrorNumber.addressInUse)
        #expect(error.code == 98 && error.description.hasSuffix("Address already in use"))
    }

    @Test func `Interest can be changed and given up`() throws {
        let loopback = try Loopback()
        let (client, server) = try loopback.pair()
        let poller = try Poller()
        try poller.add(server, .readable, token: 1)
        #expect(poller.wait(milliseconds: 0) == 0)
        try poller.modify(server, [.readable, .writable], token: .max)
        #expect(poller.wait(milliseconds: Self.patience) == 1)
        #expect(poller.event(0).token == .max && poller.event(0).writable && !poller.event(0).readable)
        poller.remove(server)
        #expect(poller.wait(milliseconds: 0) == 0)
        #expect(throws: SystemError.self) { try poller.modify(server, .readable, token: 1) }
        Socket.close(client)
        Socket.close(server)
    }
}
