package import FerryCore

extension Instant {
    /// Such as `2026-11-30 17:40:16.123 UTC`; times before 1970 and after 9999 as milliseconds.
    package var utcText: String {
        guard (0..<253_402_300_800_000).contains(milliseconds) else { return "\(milliseconds) ms" }
        let day = milliseconds / 86_400_000
        let rest = milliseconds % 86_400_000
        // Howard Hinnant's civil-from-days, for days since 1970-01-01.
        let shifted = day + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let date = [
            Self.padded(year, 4), Self.padded(month, 2), Self.padded(dayOfYear - (153 * shiftedMonth + 2) / 5 + 1, 2),
        ]
        let time = [rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60].map { Self.padded($0, 2) }
        return date.joined(separator: "-") + " " + time.joined(separator: ":") + "." + Self.padded(rest % 1000, 3)
            + " UTC"
    }

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

extension Duration {
    /// For people: `132 ms`, `1.2 s`, `3 min 5 s`, `2 h 5 min`, `3 d 4 h`. Below zero it is 0 ms.
    package var shortText: String {
        let milliseconds = max(0, inMilliseconds)
        let seconds = milliseconds / 1000
        switch milliseconds {
        case ..<1_000: return "\(milliseconds) ms"
        case ..<60_000:
            let tenths = milliseconds % 1000 / 100
            return tenths == 0 ? "\(seconds) s" : "\(seconds).\(tenths) s"
        case ..<3_600_000: return Self.pair(seconds / 60, "min", seconds % 60, "s")
        case ..<86_400_000: return Self.pair(seconds / 3600, "h", seconds / 60 % 60, "min")
        default: return Self.pair(seconds / 86_400, "d", seconds / 3600 % 24, "h")
        }
    }

    private static func pair(_ large: Int64, _ unit: String, _ small: Int64, _ smallUnit: String) -> String {
        small == 0 ? "\(large) \(unit)" : "\(large) \(unit) \(small) \(smallUnit)"
    }
}
