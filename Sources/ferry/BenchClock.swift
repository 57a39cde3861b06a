internal import Glibc

/// A monotonic clock in nanoseconds: fine enough for latencies, and the same line for stamps and due times.
enum BenchClock {
    static var nanoseconds: UInt64 { read(CLOCK_MONOTONIC) }
    /// CPU time of the thread that asks.
    static var threadNanoseconds: UInt64 { read(CLOCK_THREAD_CPUTIME_ID) }
    /// CPU time of this process.
    static var processNanoseconds: UInt64 { read(CLOCK_PROCESS_CPUTIME_ID) }

    private static func read(_ clock: clockid_t) -> UInt64 {
        var now = timespec()
        clock_gettime(clock, &now)
        return UInt64(now.tv_sec) &* 1_000_000_000 &+ UInt64(now.tv_nsec)
    }

    /// Sleeps for less than a second; the kernel adds its timer slack.
    static func pause(nanoseconds: UInt64) {
        var wish = timespec(tv_sec: 0, tv_nsec: Int(min(nanoseconds, 999_999_999)))
        nanosleep(&wish, nil)
    }
}

/// What a process has used, as the kernel tells in `/proc`.
struct ProcessGauge {
    /// User and system time of all its threads, in seconds, in steps of a clock tick (10 ms).
    let processorSeconds: Double
    /// Resident bytes, and those of them that no file backs.
    let residentBytes: UInt64
    let anonymousBytes: UInt64

    static func readSelf() -> ProcessGauge? { read(process: Int(getpid())) }

    /// nil when there is no such process.
    static func read(process: Int) -> ProcessGauge? {
        guard let stat = contents("/proc/\(process)/stat"), let status = contents("/proc/\(process)/status"),
            // The second field is the name, in parentheses, and may hold anything.
            let nameEnd = stat.lastIndex(of: ")")
        else { return nil }
        let fields = stat[nameEnd...].split(separator: " ")
        // proc(5): utime and stime are fields 14 and 15; the name is the second.
        guard fields.count > 13, let user = UInt64(fields[12]), let system = UInt64(fields[13]) else { return nil }
        let ticks = Double(max(1, sysconf(Int32(_SC_CLK_TCK))))
        return ProcessGauge(
            processorSeconds: Double(user + system) / ticks, residentBytes: kilobytes("VmRSS:", status) * 1_024,
            anonymousBytes: kilobytes("RssAnon:", status) * 1_024)
    }

    private static func kilobytes(_ name: String, _ status: String) -> UInt64 {
        for line in status.split(separator: "\n") where line.hasPrefix(name) {
            return line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap { UInt64($0) } ?? 0
        }
        return 0
    }

    /// Files of `/proc` have no size, so they are read to their end.
    private static func contents(_ path: String) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 16_384)
        let count = fread(&bytes, 1, bytes.count, file)
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }
}
