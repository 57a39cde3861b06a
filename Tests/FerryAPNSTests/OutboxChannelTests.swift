internal import FerryAPNS
internal import FerryCore
internal import Foundation
internal import Synchronization
internal import Testing

struct OutboxChannelTests {
    private final class Answers: Sendable {
        private let list = Mutex<[StubAnswer]>([])
        func add(_ answer: StubAnswer) { list.withLock { $0.append(answer) } }
        var all: [StubAnswer] { list.withLock { $0 } }
    }

    private func stub(_ number: Int) -> StubRequest {
        StubRequest(
            environment: .sandbox, token: [UInt8(truncatingIfNeeded: number)], headers: [],
            body: Array("{\"aps\":{\"badge\":\(number)}}".utf8))
    }

    private func temporaryPath() -> String { NSTemporaryDirectory() + "/ferry-outbox-\(UUID().uuidString).jsonl" }

    @Test func `Every stub becomes one line, in order, and is answered once`() throws {
        let path = temporaryPath()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let answers = Answers()
        for round in 0..<2 {
            let channel = try OutboxChannel(path: path)
            for number in 0..<100 { channel.request(stub(round * 100 + number)) { answers.add($0) } }
            channel.close()
        }
        let text = try #require(FileManager.default.contents(atPath: path))
        let badges = try text.split(separator: 10).map { line in
            let object = try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any]
            let payload = object?["payload"] as? [String: [String: Int]]
            return payload?["aps"]?["badge"]
        }
        #expect(badges == Array(0..<200))
        #expect(answers.all == Array(repeating: .accepted, count: 200))
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    @Test func `A full disk refuses stubs instead of losing them silently`() throws {
        let answers = Answers()
        let channel = try OutboxChannel(path: "/dev/full")
        channel.request(stub(1)) { answers.add($0) }
        channel.close()
        #expect(answers.all.count == 1)
        #expect(answers.all.first != .accepted)
    }
}
