/// How far an operator's clock is ahead of UTC, for what is told by the day.
package struct UTCOffset: Hashable, Sendable, BitwiseCopyable {
    /// -720...840.
    package let minutes: Int

    /// Brought into its range.
    package init(minutes: Int) { self.minutes = min(max(-720, minutes), 840) }

    var milliseconds: Int64 { Int64(minutes) * 60_000 }
}

/// A day of the calendar, as clocks at some offset from UTC have it.
package struct CalendarDay: Hashable, Comparable, Sendable, BitwiseCopyable, CustomStringConvertible {
    /// Days since 1970-01-01.
    package let number: Int32

    package init(number: Int32) { self.number = number }

    /// The day that clocks show at `instant`; times before 1970 and after 9999 are those ends.
    package init(of instant: Instant, _ offset: UTCOffset) {
        let local = instant.advanced(byMilliseconds: offset.milliseconds).milliseconds
        number = Int32(clamping: min(max(0, local / Self.milliseconds), Int64(Self.last)))
    }

    /// Reads `yyyy-MM-dd`, 1970 to 9999; nil for any other text and for days that no calendar has.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard bytes.count == 10, bytes[4] == 0x2d, bytes[7] == 0x2d,
            let year = Self.digits(bytes[0..<4]), let month = Self.digits(bytes[5..<7]),
            let day = Self.digits(bytes[8..<10]), year >= 1970, (1...12).contains(month), day >= 1
        else { return nil }
        // Howard Hinnant's days-from-civil.
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = shiftedYear / 400
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        number = Int32(era * 146_097 + dayOfEra - 719_468)
        // The 31st of June is read as the 1st of July.
        guard description == String(decoding: bytes, as: UTF8.self) else { return nil }
    }

    package var description: String {
        // Howard Hinnant's civil-from-days.
        let shifted = Int(number) + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        return [Self.padded(year, 4), Self.padded(month, 2), Self.padded(day, 2)].joined(separator: "-")
    }

    /// Its first moment.
    package func start(_ offset: UTCOffset) -> Instant {
        Instant(milliseconds: Int64(number) * Self.milliseconds - offset.milliseconds)
    }

    package func advanced(by days: Int) -> CalendarDay {
        CalendarDay(number: Int32(clamping: min(max(0, Int(number) + days), Int(Self.last))))
    }

    package static func < (left: Self, right: Self) -> Bool { left.number < right.number }

    private static let milliseconds: Int64 = 86_400_000
    /// 9999-12-31.
    private static let last: Int32 = 2_932_896

    private static func digits(_ bytes: ArraySlice<UInt8>) -> Int? {
        var value = 0
        for byte in bytes {
            guard (0x30...0x39).contains(byte) else { return nil }
            value = value * 10 + Int(byte - 0x30)
        }
        return value
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

extension Instant {
    /// Such as `2026-11-30 17:40:16`, as clocks at that offset show it.
    package func clockText(_ offset: UTCOffset) -> String {
        let day = CalendarDay(of: self, offset)
        let second = max(0, min((milliseconds - day.start(offset).milliseconds) / 1_000, 86_399))
        let parts = [second / 3_600, second / 60 % 60, second % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }
        return day.description + " " + parts.joined(separator: ":")
    }
}
