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
        writer.hexadecimal(task.value.high)
        writer.hexadecimal(task.value.low)
    }
}
