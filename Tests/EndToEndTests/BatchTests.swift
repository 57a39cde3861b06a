private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// Many pushes in one call.
@Suite struct BatchTests {
    private static func entry(_ cid: CID, _ payload: String, requestID: String? = nil) throws -> [String: Any] {
        let body = try JSONSerialization.jsonObject(
            with: Data(try Backend.pushBody(cid, payload, requestID: requestID)))
        return try #require(body as? [String: Any])
    }

    private static func push(
        _ backend: Backend, _ entries: [[String: Any]], isAsync: Any? = nil
    ) async throws -> HTTPAnswer {
        var body: [String: Any] = ["msg_list": entries]
        if let isAsync { body["is_async"] = isAsync }
        return try await backend.call(
            "POST", "/v2/\(backend.app.id)/push/single/batch/cid", headers: ["token: \(backend.token)"],
            body: try Backend.json(body))
    }

    private static func data(_ answer: HTTPAnswer) throws -> [String: [String: String]] {
        try #require(try answer.object()["data"] as? [String: [String: String]])
    }

    @Test(arguments: shardCounts)
    func `a batch reaches all its devices, each in the order of the list`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        var devices: [(device: RawDevice, cid: CID)] = []
        for _ in 0..<4 {
            let device = try await RawDevice(world)
            devices.append((device, try await device.register().cid))
        }
        let away = try await RawDevice(world)
        let awayCID = try await away.register().cid
        try await away.sayBye()
        try await backend.waitUntil(awayCID, isOnline: false)
        var entries: [[String: Any]] = []
        for number in 0..<50 {
            entries.append(try Self.entry(number == 49 ? awayCID : devices[number % 4].cid, "message \(number)"))
        }
        let answer = try await Self.push(backend, entries)
        #expect(answer.status == 200)
        let data = try Self.data(answer)
        #expect(data.count == 50, "a task for each")
        #expect(data.values.filter { $0.values.first == "successed_online" }.count == 49)
        #expect(data.values.first { $0[awayCID.description] != nil }?.values.first == "successed_offline")
        for (index, (device, _)) in devices.enumerated() {
            let numbers = (0..<49).filter { $0 % 4 == index }
            #expect(try await device.take(numbers.count).map(\.text) == numbers.map { "message \($0)" })
        }
    }

    @Test func `a batch that is repeated is answered alike and delivered once`() async throws {
        let world = try await World(shards: 2)
        let backend = try await Backend(world)
        let device = try await RawDevice(world)
        let cid = try await device.register().cid
        let entries = try (0..<3).map { try Self.entry(cid, "m\($0)", requestID: "batch-of-three-\($0)") }
        let first = try Self.data(try await Self.push(backend, entries))
        // The same once more, and one of them twice in it.
        let second = try Self.data(try await Self.push(backend, entries + [entries[1]]))
        #expect(first == second)
        try await backend.push(cid, "behind")
        #expect(try await device.take(4).map(\.text) == ["m0", "m1", "m2", "behind"])
    }

    @Test func `what is wrong with one push of a batch refuses all, with its place`() async throws {
        let world = try await World(shards: 2)
        let backend = try await Backend(world)
        let device = try await RawDevice(world)
        let cid = try await device.register().cid
        var entries = try (0..<3).map { try Self.entry(cid, "m\($0)") }
        entries[2]["request_id"] = "short"
        let refused = try await Self.push(backend, entries)
        #expect(refused.status == 400)
        #expect(refused.message.contains("request_id is invalid") && refused.message.contains("msg_list[2]"))
        for (body, part) in [
            ([:], "msg_list cannot be null"), (["msg_list": [Any]()], "msg_list can not be empty"),
            (["msg_list": "x"], "msg_list type error"), (["msg_list": [1]], "msg_list[0]"),
            (["msg_list": [entries[0]], "is_async": "perhaps"], "is_async type error"),
        ] as [([String: Any], String)] {
            let answer = try await backend.call(
                "POST", "/v2/\(backend.app.id)/push/single/batch/cid", headers: ["token: \(backend.token)"],
                body: try Backend.json(body))
            #expect(answer.status == 400 && answer.message.contains(part), "\(answer.text)")
        }
        let many = try (0..<201).map { try Self.entry(cid, "m\($0)") }
        #expect(try await Self.push(backend, many).message.contains("at most 200"))
        try await backend.push(cid, "nothing of those came before")
        #expect(try await device.take(1).map(\.text) == ["nothing of those came before"])
    }

    @Test func `a device that does not exist is named, and the others of the batch get theirs`() async throws {
        let world = try await World(shards: 2)
        let backend = try await Backend(world)
        let device = try await RawDevice(world)
        let cid = try await device.register().cid
        let stranger = try #require(CID(hex: "00000000000000000000000000000001"))
        let data = try Self.data(
            try await Self.push(backend, [try Self.entry(stranger, "lost"), try Self.entry(cid, "found")]))
        #expect(data["not_accepted"]?[stranger.description]?.contains("target user is invalid") == true)
        #expect(data.values.contains { $0[cid.description] == "successed_online" })
        #expect(try await device.take(1).map(\.text) == ["found"])
        let alone = try await Self.push(backend, [try Self.entry(stranger, "lost")])
        #expect(alone.status == 400 && alone.message.contains("target user is invalid"))
    }

    @Test func `an asynchronous batch is on disk as well, and its answer has no data`() async throws {
        let world = try await World(shards: 2)
        let backend = try await Backend(world)
        let device = try await RawDevice(world)
        let cid = try await device.register().cid
        let answer = try await Self.push(backend, [try Self.entry(cid, "quiet")], isAsync: true)
        #expect(answer.status == 200 && answer.text == #"{"code":0,"msg":"success"}"#)
        #expect(try await device.take(1).map(\.text) == ["quiet"])
    }
}
