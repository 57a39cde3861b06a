internal import FerryCore

/// How a broadcast goes, beyond what any message says of itself.
package struct BroadcastTerms: Equatable, Sendable {
    /// Devices a second over all shards; 0 has no limit.
    package var speed: Int64
    /// Owners of devices that are away are woken.
    package var wakes: Bool
    /// The sender's own alert; nil for the gateway's default.
    package var alert: OwnAlert?

    package static let none = BroadcastTerms(speed: 0, wakes: false, alert: nil)

    package init(speed: Int64, wakes: Bool, alert: OwnAlert?) {
        self.speed = max(0, speed)
        self.wakes = wakes
        self.alert = alert
    }

    // MARK: - Bytes

    /// They follow those of `MessageTraits`, whose reader passes over them.
    private enum Tag {
        static let speed: UInt64 = 64
        static let wakes: UInt64 = 65
        static let alert: UInt64 = 66
        static let collapseID: UInt64 = 67
        static let background: UInt64 = 68
    }

    /// `encoded` has no more.
    static let encodedBytes = 8_192

    /// Empty for `none`.
    var encoded: [UInt8] {
        var writer = TaggedFieldsWriter()
        if speed > 0 { writer.number(Tag.speed, UInt64(speed)) }
        writer.mark(Tag.wakes, wakes)
        if let alert {
            writer.field(Tag.alert, alert.body)
            writer.text(Tag.collapseID, alert.collapseID)
            writer.mark(Tag.background, alert.isBackground)
        }
        return writer.bytes
    }

    /// nil when it is none. Fields that are not known are passed over.
    init?(encoded: UnsafeRawBufferPointer) {
        self = .none
        var reader = TaggedFieldsReader(encoded)
        while let (tag, value) = reader.next() {
            switch tag {
            case Tag.speed:
                guard let speed = TaggedFieldsReader.number(value).flatMap({ Int64(exactly: $0) }) else { return nil }
                self.speed = speed
            case Tag.wakes: wakes = true
            case Tag.alert: alert = OwnAlert(body: [UInt8](value), collapseID: nil, isBackground: false)
            case Tag.collapseID: alert?.collapseID = TaggedFieldsReader.text(value)
            case Tag.background: alert?.isBackground = true
            default: break
            }
        }
        guard !reader.isBroken else { return nil }
    }
}
