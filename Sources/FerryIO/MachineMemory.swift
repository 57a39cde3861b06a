internal import CLinux

/// How much memory this process can have.
package enum MachineMemory {
    /// Gives what was freed back to the system: after a start, which for a while holds what it read twice.
    package static func trim() { clinux_trim_memory() }

    /// Bytes: the machine's, or what the control group allows where that is less. nil where neither can be read.
    package static func bytes() -> Int? {
        var limits = [meminfo(text(of: "/proc/meminfo"))]
        // Version 2: the limit of every group around the process counts.
        var group = cgroup(text(of: "/proc/self/cgroup"))
        while let path = group {
            limits.append(limit(text(of: "/sys/fs/cgroup\(path)/memory.max")))
            group = path.isEmpty ? nil : path.lastIndex(of: "/").map { String(path[..<$0]) }
        }
        limits.append(limit(text(of: "/sys/fs/cgroup/memory/memory.limit_in_bytes")))
        return limits.compactMap { $0 }.min()
    }

    /// `MemTotal` of `/proc/meminfo`, in bytes.
    static func meminfo(_ text: String) -> Int? {
        for line in text.split(separator: "\n") where line.hasPrefix("MemTotal:") {
            guard let kibibytes = line.split(separator: " ").dropFirst().first.flatMap({ Int($0) }),
                (1...1 << 40).contains(kibibytes)
            else { return nil }
            return kibibytes * 1_024
        }
        return nil
    }

    /// The group's path in `/proc/self/cgroup`; "" for the root.
    static func cgroup(_ text: String) -> String? {
        for line in text.split(separator: "\n") where line.hasPrefix("0::/") {
            let path = String(line.dropFirst(3))
            return path == "/" ? "" : path
        }
        return nil
    }

    /// A limit as a control group writes it: a number, or `max`.
    static func limit(_ text: String) -> Int? {
        text.split(whereSeparator: { $0.isWhitespace }).first.flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil }
    }

    /// The beginning of a file of the kernel's, which have no size; "" where there is none.
    private static func text(of path: String) -> String {
        let descriptor = clinux_open_read(path)
        guard descriptor >= 0 else { return "" }
        defer { _ = clinux_close(descriptor) }
        let bytes = [UInt8](unsafeUninitializedCapacity: 4_096) { buffer, count in
            count = max(0, clinux_pread(descriptor, buffer.baseAddress, buffer.count, 0))
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
