package import FerryCore

/// One message for one device. Its number is not in it: pushes of a link count from 1.
package struct LinkPushFrame: FrameBody {
    package static var type: FrameType { .linkPush }

    /// Bits of the flags byte. Unknown ones are ignored.
    package struct Flags: OptionSet, Hashable, Sendable, BitwiseCopyable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }
        /// Delivered now or never; `ttl` has no meaning then.
        package static let liveOnly = Flags(rawValue: 1)
        /// The own alert is one that nobody sees.
        package static let background = Flags(rawValue: 2)
    }

    /// The backend's name for this push: the same one again is the same push.
    package var id: Identifier128
    package var cid: CID
    package var flags: Flags
    /// Milliseconds; 0 is the default.
    package var ttl: UInt64
    /// The body for APNs, at most `Limits.apnsPayloadBytes`; empty: the gateway's own stub.
    package var alert: [UInt8]
    /// At most `Limits.collapseIDBytes`; empty: none.
    package var collapseID: String
    /// At most `Limits.payloadBytes`; any bytes.
    package var payload: [UInt8]

    package init(
        id: Identifier128, cid: CID, flags: Flags = [], ttl: UInt64 = 0, alert: [UInt8] = [], collapseID: String = "",
        payload: [UInt8]
    ) {
        self.id = id
        self.cid = cid
        self.flags = flags
        self.ttl = ttl
        self.alert = alert
        self.collapseID = collapseID
        self.payload = payload
    }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        let fields = try LinkPushFields(body: body)
        id = fields.id
        cid = fields.cid
        flags = fields.flags
        ttl = fields.ttl
        alert = Array(fields.alert)
        collapseID = String(decoding: fields.collapseID, as: UTF8.self)
        payload = Array(fields.payload)
    }

    package func writeBody(to writer: inout ByteWriter) {
        writer.identifier(id)
        writer.identifier(cid.value)
        writer.byte(flags.rawValue)
        writer.varint(ttl)
        writer.string(alert)
        writer.string(collapseID.utf8)
        writer.string(payload)
    }

    /// What of a body two pushes share exactly when they are the same but for their id: all behind it, extensions included.
    package static func content(of body: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: body[min(16, body.count)...])
    }
}

/// A `LinkPushFrame` with its long parts still in the body that they were read from; it lives no longer than that.
package struct LinkPushFields {
    package let id: Identifier128
    package let cid: CID
    package let flags: LinkPushFrame.Flags
    package let ttl: UInt64
    package let alert: UnsafeRawBufferPointer
    package let collapseID: UnsafeRawBufferPointer
    package let payload: UnsafeRawBufferPointer

    /// Allocates nothing.
    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        var reader = BodyReader(body)
        id = try reader.identifier()
        cid = CID(try reader.identifier())
        flags = LinkPushFrame.Flags(rawValue: try reader.byte())
        ttl = try reader.varint()
        alert = try reader.string(limit: Limits.apnsPayloadBytes)
        collapseID = try reader.string(limit: Limits.collapseIDBytes)
        payload = try reader.string(limit: Limits.payloadBytes)
        try reader.end()
    }
}
