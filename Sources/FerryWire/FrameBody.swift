package import FerryCore

/// What all frames can do: write themselves.
package protocol FrameBody: Hashable, Sendable {
    static var type: FrameType { get }
    func writeBody(to writer: inout ByteWriter)
}

extension FrameBody {
    package func body() -> [UInt8] {
        var writer = ByteWriter()
        writeBody(to: &writer)
        return writer.bytes
    }

    /// Appends the whole frame.
    package func encode(into writer: inout ByteWriter) {
        let body = body()
        writer.byte(Self.type.rawValue)
        writer.varint(UInt64(body.count))
        writer.raw(body)
    }

    package func encoded() -> [UInt8] {
        var writer = ByteWriter()
        encode(into: &writer)
        return writer.bytes
    }
}

/// A frame whose body ends with a proof over all before it. The proof is made and checked by who holds the keys:
/// `Transcript` says over which bytes.
package protocol SignedFrameBody: FrameBody {
    var proof: Bytes32 { get set }
    /// Writes the body without its proof.
    func writeSignedPart(to writer: inout ByteWriter)
}

extension SignedFrameBody {
    package func writeBody(to writer: inout ByteWriter) {
        writeSignedPart(to: &writer)
        writer.raw(proof.bytes)
    }

    /// The body without its proof.
    package func signedPart() -> [UInt8] {
        var writer = ByteWriter()
        writeSignedPart(to: &writer)
        return writer.bytes
    }
}

/// A received body that ends with a proof.
package enum SignedBody {
    /// The part that the proof covers, as it came: another encoder's bytes need not be ours, so sign these and not a
    /// frame that was encoded again. nil when the body is shorter than a proof.
    package static func signedPart(of body: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard body.count >= WireLimits.proofBytes else { return nil }
        return UnsafeRawBufferPointer(rebasing: body[..<(body.count - WireLimits.proofBytes)])
    }

    /// Both parts, or the protocol's error.
    static func split(
        _ body: UnsafeRawBufferPointer
    ) throws(WireError) -> (signed: UnsafeRawBufferPointer, proof: Bytes32) {
        guard let signed = signedPart(of: body) else { throw .shortField }
        var tail = BodyReader(UnsafeRawBufferPointer(rebasing: body[signed.count...]))
        return (signed, try tail.bytes32())
    }
}
