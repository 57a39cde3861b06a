/// Ceilings and defaults of protocol version 1 that are not sizes of stored things. `protocol-spec/registry/limits.json`
/// says the same; a test compares.
package enum WireLimits {
    /// The one protocol version of this code.
    package static let version: UInt64 = 1
    /// A frame before its body: the type and the longest length.
    package static let headerBytes = 5
    package static let proofBytes = 32
    package static let appIDBytes = 64
    package static let taskIDBytes = 64
    package static let closeTextBytes = 256
    package static let clientInfoBytes = 64
    /// Unacknowledged messages of one session.
    package static let windowDefault: UInt64 = 64
    package static let windowMaximum: UInt64 = 1_024
    package static let windowBytesDefault: UInt64 = 262_144
    /// Payloads that are compressed have at least this, where both sides want it.
    package static let compressionBytes: UInt64 = 1_024
    package static let keepAliveDefaultSeconds: UInt64 = 240
    package static let keepAliveMinimumSeconds: UInt64 = 5
    package static let keepAliveMaximumSeconds: UInt64 = 3_600
    package static let handshakeSeconds: UInt64 = 10
    package static let ackDeadlineSeconds: UInt64 = 10
    package static let acknowledgementSeconds: UInt64 = 60
    package static let reattachGraceSeconds: UInt64 = 5
    /// The text of one refusal on a link.
    package static let linkTextBytes = 256
    /// Pushes of a link without an answer, and the bytes of their bodies.
    package static let linkWindowDefault: UInt64 = 4_096
    package static let linkWindowBytesDefault: UInt64 = 4_194_304
    package static let linkKeepAliveSeconds: UInt64 = 30
}
