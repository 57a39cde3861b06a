internal import FerryWire

/// The times and windows that the gateway grants to backends' links.
package struct LinkPolicy: Hashable, Sendable {
    /// From a connection's first byte to its welcome.
    package var handshakeDeadline = Duration.seconds(10)
    /// A backend lets the gateway hear something this often; after half as long again it is closed.
    package var keepAlive = Duration.seconds(Int64(WireLimits.linkKeepAliveSeconds))
    /// How long answers may stay above the high-water mark.
    package var slowDeadline = Duration.seconds(30)
    /// Pushes without an answer, 1...65,536.
    package var window = Int(WireLimits.linkWindowDefault)
    /// Bytes of their bodies, `Limits.linkFrameBytes` at least.
    package var windowBytes = Int(WireLimits.linkWindowBytesDefault)

    package init() {}
}
