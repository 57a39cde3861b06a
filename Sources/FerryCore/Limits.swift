/// Ceilings of protocol version 1 and of the data folder. `protocol-spec/registry/limits.json` says the same; a test compares.
package enum Limits {
    /// Partitions of a data folder; fixed when the folder is made.
    package static let partitions = 1024
    /// A message's payload, in bytes.
    package static let payloadBytes = 65_536
    /// A frame's body from the gateway: a payload and the fields around it.
    package static let gatewayFrameBytes = 66_560
    /// A frame's body from a device.
    package static let deviceFrameBytes = 4_096
    /// A frame's body from a backend's link: a payload, an alert and the fields around them.
    package static let linkFrameBytes = 70_656
    /// The longest ttl, in milliseconds: three days.
    package static let timeToLiveMilliseconds: Int64 = 259_200_000
    /// ttl when the sender names none, in milliseconds: two hours.
    package static let timeToLiveDefaultMilliseconds: Int64 = 7_200_000
    /// An APNs collapse id.
    package static let collapseIDBytes = 64
    /// An APNs device token, in bytes; Apple fixes no size.
    package static let pushTokenBytes = 128
    /// An APNs payload, in UTF-8 bytes (Apple, "Generating a remote notification").
    package static let apnsPayloadBytes = 4_096
}
