internal import CLinux

/// Calls on non-blocking TCP sockets. A descriptor is an `Int32` that its owner closes once.
package enum Socket {
    /// What one call moved, or why it moved nothing.
    package enum Transfer: Equatable, Sendable {
        case moved(Int)
        /// Nothing now; wait until the poller says so.
        case wouldBlock
        /// The peer will send nothing more.
        case ended
        /// The connection is broken; the kernel's error number.
        case failed(Int32)
    }

    package static func listen(_ address: SocketAddress, backlog: Int32 = 4096) throws(SystemError) -> Int32 {
        try SystemError.check("listen on \(address)", clinux_listen(address.address, address.port, backlog))
    }

    package static func localPort(_ descriptor: Int32) throws(SystemError) -> UInt16 {
        UInt16(truncatingIfNeeded: try SystemError.check("read the local port", clinux_local_port(descriptor)))
    }

    /// One waiting connection and its peer, or the kernel's error number.
    package static func accept(_ listener: Int32) -> Result<(descriptor: Int32, peer: SocketAddress), SystemError> {
        var address: UInt32 = 0
        var port: UInt16 = 0
        let result = clinux_accept(listener, &address, &port)
        guard result >= 0 else { return .failure(SystemError("accept", -result)) }
        return .success((result, SocketAddress(address: address, port: port)))
    }

    /// Starts connecting, from `source` (host byte order) when not 0. When the socket turns writable, ask `error(of:)`.
    package static func connect(to address: SocketAddress, from source: UInt32 = 0) throws(SystemError) -> Int32 {
        try SystemError.check("connect to \(address)", clinux_connect(source, address.address, address.port))
    }

    /// The socket's pending error number, 0 when there is none.
    package static func error(of descriptor: Int32) -> Int32 { -clinux_socket_error(descriptor) }

    package static func receive(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
        let result = clinux_receive(descriptor, buffer.baseAddress, buffer.count)
        if result > 0 { return .moved(result) }
        return result == 0 ? .ended : failure(result)
    }

    package static func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Transfer {
        let result = clinux_send(descriptor, bytes.baseAddress, bytes.count)
        return result >= 0 ? .moved(result) : failure(result)
    }

    /// Tells the peer that nothing more comes; false when the connection is gone already.
    package static func shutdownWrite(_ descriptor: Int32) -> Bool { clinux_shutdown_write(descriptor) >= 0 }

    package static func close(_ descriptor: Int32) { _ = clinux_close(descriptor) }

    private static func failure(_ result: Int) -> Transfer {
        let code = Int32(truncatingIfNeeded: -result)
        return code == ErrorNumber.again ? .wouldBlock : .failed(code)
    }
}
