internal import FerryCore

/// A task's id as text, written without making a `String`.
enum TaskIDText {
    /// `RASS_MMdd_` and 32 digits.
    static let count = 42

    static func write(_ task: TaskID, to writer: inout RawWriter) {
        writer.byte(0x52)
        writer.byte(0x41)
        writer.byte(0x53)
        writer.byte(task.kind.rawValue)
        writer.byte(0x5f)
        writer.byte(48 + UInt8(task.monthDay / 1000 % 10))
        writer.byte(48 + UInt8(task.monthDay / 100 % 10))
        writer.byte(48 + UInt8(task.monthDay / 10 % 10))
        writer.byte(48 + UInt8(task.monthDay % 10))
        writer.byte(0x5f)
        hex(task.value.high, to: &writer)
        hex(task.value.low, to: &writer)
    }

    private static func hex(_ value: UInt64, to writer: inout RawWriter) {
        var shift: UInt64 = 60
        while true {
            let nibble = UInt8(value >> shift & 15)
            writer.byte(nibble < 10 ? 48 + nibble : 87 + nibble)
            if shift == 0 { return }
            shift -= 4
        }
    }
}
