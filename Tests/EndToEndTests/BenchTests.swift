private import Foundation
internal import Testing

/// The bench whose connections are lines in memory.
@Suite struct BenchTests {
    /// Every number that is told stands for devices that logged in and messages that came, or the bench fails.
    @Test func `sessions in memory need no descriptors, take their messages and all come back`() async throws {
        let child = try Child(
            ["bench", "--mode", "memory", "--sessions", "2500", "--messages", "3000", "--broadcasts", "0"],
            descriptors: 256)
        var steps: [[String: Any]] = []
        while let line = try await child.line(within: .seconds(120)) {
            steps.append(try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]))
        }
        #expect(try await child.status() == 0, "\(child.errorText)")
        #expect(steps.map { $0["sessions"] as? Int } == [1_000, 2_500])
        #expect(steps.map { Self.number("count", of: "messages", $0) } == [3_000, 3_000])
        let last = try #require(steps.last)
        #expect(Self.number("count", of: "registering", last) == 1_500)
        #expect(Self.number("count", of: "logins", last) == 2_500)
        // Half of the granted 240 seconds is what each waits at most before it says something.
        let spoken = try #require(Self.number("keepAlives", of: "speaking", last))
        #expect(abs(spoken - 2_500 * 130 / 120) <= 2)
        #expect(Self.number("keepAlives", of: "silent", last) == 0)
    }

    @Test(arguments: [
        ["--mode", "memory", "--sessions", "0"], ["--mode", "memory", "--messages", "many"], ["--mode", "online"],
    ])
    func `a bench that cannot begin says why in one line`(options: [String]) async throws {
        let result = try await Child.run(["bench"] + options)
        #expect(result.status == 1)
        #expect(result.lines == [])
        #expect(result.errors.split(separator: "\n").count == 1)
    }

    private static func number(_ name: String, of part: String, _ step: [String: Any]) -> Int? {
        (step[part] as? [String: Any])?[name] as? Int
    }
}
