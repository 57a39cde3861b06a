@testable internal import FerryIO
internal import Testing

struct MachineMemoryTests {
    @Test func `The machine's memory is read in its own unit`() {
        #expect(MachineMemory.meminfo("MemTotal:       16384000 kB\nMemFree: 1 kB\n") == 16_384_000 * 1_024)
        for wrong in [
            "", "MemFree: 1 kB", "MemTotal:", "MemTotal: x kB", "MemTotal: -1 kB", "MemTotal: 9999999999999999 kB",
        ] {
            #expect(MachineMemory.meminfo(wrong) == nil)
        }
    }

    @Test func `A control group's path is the one of version 2`() {
        #expect(MachineMemory.cgroup("12:pids:/x\n0::/system.slice/ferry.service\n") == "/system.slice/ferry.service")
        #expect(MachineMemory.cgroup("0::/\n") == "")
        #expect(MachineMemory.cgroup("4:memory:/x\n") == nil)
    }

    @Test func `A control group's limit is a number or none`() {
        #expect(MachineMemory.limit("1073741824\n") == 1_073_741_824)
        for none in ["max\n", "", "0\n", "-1\n"] { #expect(MachineMemory.limit(none) == nil) }
    }

    @Test func `This machine has some memory, and not more than there are addresses`() throws {
        let bytes = try #require(MachineMemory.bytes())
        #expect(bytes > 1 << 20 && bytes < 1 << 48)
    }
}
