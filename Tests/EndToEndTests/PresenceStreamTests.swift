private import FerryCore
private import FerryIO
private import Foundation
internal import Testing

/// A backend that reads which devices come and go.
private final class EventReader {
    private let socket: ByteSocket
    private var buffer = ""
    private(set) var head = ""

    init(_ world: World, _ token: String, query: String = "") async throws {
        socket = try await ByteSocket(to: world.backends)
        try await socket.send(
            Backend.request("GET", "/v1/shop/presence" + query, headers: ["token: \(token)"]))
        head = try await take(until: "\r\n\r\n") ?? ""
    }

    private func take(until end: String) async throws -> String? {
        while true {
            if let range = buffer.range(of: end) {
                let part = String(buffer[..<range.lowerBound])
                buffer.removeSubrange(..<range.upperBound)
                return part
            }
            guard let bytes = try await socket.receive() else { return nil }
            buffer += String(decoding: bytes, as: UTF8.self)
        }
    }

    /// The next event; nil at the end of the stream.
    func next() async throws -> (name: String, data: [String: Any])? {
        guard let text = try await take(until: "\n\n") else { return nil }
        let lines = text.split(separator: "\n")
        guard lines.count == 2, lines[0].hasPrefix("event: "), lines[1].hasPrefix("data: "),
            let data = try JSONSerialization.jsonObject(with: Data(lines[1].dropFirst(6).utf8)) as? [String: Any]
        else { throw Unexpected("no event: \(text)") }
        return (String(lines[0].dropFirst(7)), data)
    }

    func close() { socket.close() }
}

/// `GET /v1/{appId}/presence`.
@Suite struct PresenceStreamTests {
    @Test(arguments: shardCounts)
    func `a stream begins with who is there, and tells each device that comes or goes`(shards: Int) async throws {
        let world = try await World(shards: shards, ["reattachGraceMs": 50])
        let first = try await RawDevice(world)
        let early = try await first.register()
        let backend = try await Backend(world)
        let all = try await EventReader(world, backend.token)
        #expect(all.head.hasPrefix("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream"))
        let snapshot = try #require(try await all.next())
        #expect(snapshot.name == "snapshot" && snapshot.data["online"] as? Int == 1)
        let some = try await EventReader(world, backend.token, query: "?cid=\(early.cid)")
        let mine = try #require(try await some.next())
        #expect(mine.data["cids"] as? [String] == [early.cid.description])

        let second = try await RawDevice(world)
        let late = try await second.register()
        let came = try #require(try await all.next())
        #expect(came.name == "online" && came.data["cid"] as? String == late.cid.description)
        #expect((came.data["session"] as? String)?.count == 16)
        try await first.sayBye()
        let went = try #require(try await all.next())
        #expect(went.name == "offline" && went.data["cid"] as? String == early.cid.description)
        // Who asked for one device only is not told of the other.
        let own = try #require(try await some.next())
        #expect(own.name == "offline" && own.data["cid"] as? String == early.cid.description)
        // Another app's devices are nobody's here.
        let stranger = try await RawDevice(world, app: .second)
        try await stranger.register()
        second.close()
        let last = try #require(try await all.next())
        #expect(last.name == "offline" && last.data["cid"] as? String == late.cid.description)
    }

    @Test(arguments: shardCounts)
    func `a stop tells the stream that it ends, and does not wait for its reader`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let reader = try await EventReader(world, try await Backend(world).token)
        #expect(try await reader.next()?.name == "snapshot")
        #expect(try await world.stop().status == 0)
        let closed = try #require(try await reader.next())
        #expect(closed.name == "closed" && closed.data["reason"] as? String == "stopping")
        #expect(try await reader.next() == nil)
    }

    @Test(arguments: shardCounts)
    func `an erased device goes for those who watch, and is in no count any more`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        for _ in 0..<3 {
            let device = try await RawDevice(world)
            let cid = try await device.register().cid
            let all = try await EventReader(world, backend.token)
            let snapshot = try #require(try await all.next())
            #expect(snapshot.data["online"] as? Int == 1)
            #expect(try await backend.user("DELETE", "devices/\(cid)", version: "v1").code == 0)
            let went = try #require(try await all.next())
            #expect(went.name == "offline" && went.data["cid"] as? String == cid.description)
            all.close()
        }
    }

    @Test(arguments: shardCounts)
    func `a token that is taken back ends its streams, before that is answered`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let (first, second) = (try await Backend(world), try await Backend(world))
        var readers: [EventReader] = []
        for _ in 0..<4 { readers.append(try await EventReader(world, first.token)) }
        let other = try await EventReader(world, second.token)
        for reader in readers + [other] { #expect(try await reader.next()?.name == "snapshot") }
        let path = "/v2/\(first.app.id)/auth/\(first.token)"
        #expect(try await second.call("DELETE", path).code == 0)
        // What happens after the answer is told to others only.
        let device = try await RawDevice(world)
        try await device.register()
        for reader in readers {
            let last = try #require(try await reader.next())
            #expect(last.name == "closed" && last.data["reason"] as? String == "token revoked")
            #expect(try await reader.next() == nil)
        }
        #expect(try await other.next()?.name == "online")
    }

    @Test func `a stream that nobody reads any more is let go`() async throws {
        let world = try await World(shards: 2)
        let backend = try await Backend(world)
        // One shard serves 64 streams of an app: those that are gone must not count.
        for _ in 0..<140 {
            let reader = try await EventReader(world, backend.token)
            #expect(try await reader.next()?.name == "snapshot")
            reader.close()
        }
    }

    @Test func `a stream needs a live token, one cid at least where it names any, and a request of its own`()
        async throws
    {
        let world = try await World(shards: 1)
        let backend = try await Backend(world)
        let bad = try await backend.call("GET", "/v1/shop/presence", headers: ["token: 00"])
        #expect(bad.status == 401)
        let headers = ["token: \(backend.token)"]
        for query in ["?cid=", "?cid=a&cid=b"] {
            #expect(try await backend.call("GET", "/v1/shop/presence" + query, headers: headers).status == 400)
        }
        #expect(try await backend.call("GET", "/v1/shop/presence?cid=zz", headers: headers).status == 404)
        #expect(try await backend.call("POST", "/v1/shop/presence", headers: headers, body: []).status == 405)
        // Answers in their turn: the connection goes on.
        #expect(try await backend.call("GET", "/healthz").status == 200)
    }
}
