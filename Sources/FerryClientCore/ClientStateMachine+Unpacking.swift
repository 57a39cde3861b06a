internal import FerryCore
package import FerryWire

/// Compressed payloads: they become their originals before the machine counts a message as received, so that one that
/// cannot be read comes again.
extension ClientStateMachine {
    /// Whether pushes on this connection may be compressed: the client has said that it takes them, and the gateway that
    /// it sends them.
    package var isCompressionAgreed: Bool {
        guard case .attached(let attachment) = phase else { return false }
        return attachment.isCompressionAgreed
    }

    /// The event that a frame from the gateway is, with a compressed payload's original in its place.
    /// - Parameter inflate: answers the stream's content if it is a whole stream of exactly `count` bytes, else nil, and
    ///   never makes more than that.
    package func event(
        for frame: GatewayFrame, isProven: Bool,
        inflate: (_ stream: UnsafeRawBufferPointer, _ count: Int) -> [UInt8]?
    ) -> ClientEvent {
        guard case .push(let push) = frame, push.flags.contains(.compressed) else {
            return .frameReceived(frame, isProven: isProven)
        }
        do throws(WireError) {
            let whole = try push.unpacked(isAgreed: isCompressionAgreed, inflate: inflate)
            return .frameReceived(.push(whole), isProven: isProven)
        } catch {
            return .unpackingFailed(error)
        }
    }

    /// What a login says now. After a payload that could not be read, not that it takes compressed ones: whichever side's
    /// fault that was, the message can be taken as it is.
    var wishes: AttachWishes {
        var wishes = configuration.wishes
        if hasFailedToUnpack { wishes.capabilities.remove(.compressedPayloads) }
        return wishes
    }

    mutating func unpackingFailed(
        _ error: WireError, now: Instant, using random: inout some RandomNumberGenerator
    ) -> [ClientAction] {
        guard hasConnection else { return [] }
        hasFailedToUnpack = true
        return lose(.malformed(error), now: now, using: &random)
    }
}
