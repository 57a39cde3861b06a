private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// The API's HTTP, byte for byte where it matters (RFC 9112).
@Suite struct HTTPTests {
    @Test(arguments: shardCounts)
    func `pipelined requests are answered in their order`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        var cids: [CID] = []
        for _ in 0..<4 { cids.append(try await RawDevice(world).register().cid) }
        // Quick ones and slow ones in turn, of owners on every shard.
        var bytes: [UInt8] = []
        for number in 0..<16 {
            switch number % 4 {
            case 0: bytes += backend.pushRequest(try Backend.pushBody(cids[number / 4], "\(number)"))
            case 1: bytes += Backend.request("GET", "/healthz")
            case 2: bytes += Backend.request("GET", "/nowhere/\(number)")
            default:
                let path = "/v2/shop/user/status/\(cids[number / 4])"
                bytes += Backend.request("GET", path, headers: ["token: \(backend.token)"])
            }
        }
        try await backend.socket.send(bytes)
        for number in 0..<16 {
            let answer = try await backend.answer()
            switch number % 4 {
            case 0: #expect(try answer.receipt().cid == cids[number / 4].description)
            case 1: #expect(answer.text == #"{"status":"ok"}"#)
            case 2: #expect(answer.status == 404 && answer.message.contains("/nowhere/\(number)"))
            default: #expect(answer.text.contains(cids[number / 4].description))
            }
            #expect(answer.headers["connection"] == "keep-alive")
        }
    }

    @Test(arguments: shardCounts)
    func `a flood of pipelined requests is answered to the last`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        let device = try await RawDevice(world)
        let cid = try await device.register().cid
        let count = 500
        let requests = try (0..<count).flatMap { backend.pushRequest(try Backend.pushBody(cid, "message \($0)")) }
        try await backend.socket.send(requests)
        for _ in 0..<count { _ = try await backend.answer().receipt() }
        #expect(try await device.take(count).map(\.text) == (0..<count).map { "message \($0)" })
    }

    @Test(arguments: shardCounts)
    func `a connection lives on after an answer, unless one side said otherwise`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world, authenticates: false)
        for _ in 0..<3 { #expect(try await backend.call("GET", "/readyz").text == #"{"status":"ready"}"#) }
        let head = try await backend.call("HEAD", "/healthz")
        #expect(head.status == 200 && head.headers["content-length"] == "15" && head.body.isEmpty)
        #expect(try await backend.call("GET", "/healthz").status == 200)
        let last = try await backend.call("GET", "/healthz", headers: ["Connection: close"])
        #expect(last.headers["connection"] == "close")
        #expect(try await backend.isHungUp())
        let old = try await Backend(world, authenticates: false)
        try await old.socket.send(Array("GET /healthz HTTP/1.0\r\nHost: gateway\r\n\r\n".utf8))
        #expect(try await old.answer().status == 200)
        #expect(try await old.isHungUp())
    }

    @Test(arguments: shardCounts)
    func `what is wrong with a call is said, and the connection goes on`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        let push = "/v2/shop/push/single/cid"
        let token = ["token: \(backend.token)"]
        let cid = String(repeating: "0", count: 32)
        func answer(_ body: String) async throws -> HTTPAnswer {
            try await backend.call("POST", push, headers: token, body: Array(body.utf8))
        }
        #expect(try await backend.call("GET", "/").status == 404)
        #expect(try await backend.call("GET", "/v2/shop/unheard-of", headers: token).status == 404)
        let wrongMethod = try await backend.call("GET", push, headers: token)
        #expect(wrongMethod.status == 405 && wrongMethod.headers["allow"] == "POST")
        #expect(try await answer("{").code == 1)
        #expect(try await answer("").code == 1)
        #expect(try await answer("[]").code != 0)
        let cases: [(String, String)] = [
            (#"{"request_id":"short"}"#, "request_id"),
            (#"{"request_id":"0123456789"}"#, "audience"),
            (#"{"request_id":"0123456789","audience":{"cid":[]}}"#, "audience.cid"),
            (#"{"request_id":"0123456789","audience":{"cid":["x"]}}"#, #"cid "x""#),
            (#"{"request_id":"0123456789","audience":{"cid":["\#(cid)"]}}"#, "push_message"),
            (
                #"{"request_id":"0123456789","audience":{"cid":["\#(cid)"]},"push_message":{"transmission":""}}"#,
                "push_message.transmission"
            ),
            (
                #"{"request_id":"0123456789","audience":{"cid":["\#(cid)"]},"push_message":{"transmission":"x"},"#
                    + #""settings":{"ttl":999999999999}}"#, "settings.ttl"
            ),
        ]
        for (body, name) in cases {
            let refused = try await answer(body)
            #expect(refused.status == 400 && refused.code == 20001, "\(body)")
            #expect(refused.message.contains(name), "\(refused.message) for \(body)")
        }
        #expect(try await backend.call("GET", "/healthz").status == 200)
    }

    @Test(arguments: shardCounts)
    func `what cannot be read is refused, and the connection ends`(shards: Int) async throws {
        let world = try await World(shards: shards, ["bodyBytes": 2_048])
        let cases: [(String, Int)] = [
            ("POST /v2/shop/auth HTTP/1.1\r\nHost: g\r\nContent-Length: 2049\r\n\r\n", 413),
            ("POST /v2/shop/auth HTTP/1.1\r\nHost: g\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
            ("POST /v2/shop/auth HTTP/1.1\r\nHost: g\r\nContent-Length: -1\r\n\r\n", 400),
            ("POST /v2/shop/auth HTTP/1.1\r\nHost: g\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
            (
                "POST /v2/shop/auth HTTP/1.1\r\nHost: g\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
                400
            ),
            ("GET /healthz HTTP/1.1\r\n\r\n", 400),
            ("GET /healthz HTTP/3.0\r\nHost: g\r\n\r\n", 505),
            ("GET /healthz HTTP/1.1\nHost: g\n\n", 400),
            ("GET /\(String(repeating: "a", count: 50_000)) HTTP/1.1\r\nHost: g\r\n\r\n", 414),
            ("GET / HTTP/1.1\r\nHost: g\r\nX: \(String(repeating: "a", count: 20_000))\r\n\r\n", 431),
        ]
        for (request, status) in cases {
            let backend = try await Backend(world, authenticates: false)
            // What follows must not be taken for another request.
            try await backend.socket.send(Array(request.utf8) + Backend.request("GET", "/healthz"))
            let answer = try await backend.answer()
            #expect(answer.status == status, "\(request.prefix(120))")
            #expect(answer.headers["connection"] == "close")
            #expect(try await backend.isHungUp(), "\(request.prefix(120))")
        }
    }

    @Test(arguments: shardCounts)
    func `bodies may be chunked, waited for, and cut anywhere`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        let cid = try await RawDevice(world).register().cid
        let body = try Backend.pushBody(cid, "chunked")
        let head = "POST /v2/shop/push/single/cid HTTP/1.1\r\nHost: g\r\ntoken: \(backend.token)\r\n"

        var chunked = Array((head + "Transfer-Encoding: chunked\r\n\r\n").utf8)
        for byte in body { chunked += Array("1\r\n".utf8) + [byte] + Array("\r\n".utf8) }
        try await backend.socket.send(chunked + Array("0\r\n\r\n".utf8))
        let first = try await backend.answer().receipt()

        let waits = "Expect: 100-continue\r\nContent-Length: \(body.count)\r\n\r\n"
        try await backend.socket.send(Array((head + waits).utf8))
        #expect(try await backend.answer().status == 100)
        try await backend.socket.send(body)
        #expect(try await backend.answer().receipt() == first)

        backend.socket.sendsSingleBytes = true
        try await backend.socket.send(backend.pushRequest(body))
        #expect(try await backend.answer().receipt() == first)
    }

    @Test(arguments: shardCounts)
    func `a client that has said all still gets its answers`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let cid = try await RawDevice(world).register().cid
        for _ in 0..<20 {
            let backend = try await Backend(world)
            let requests = try (0..<3).flatMap { backend.pushRequest(try Backend.pushBody(cid, "half \($0)")) }
            try await backend.socket.send(requests)
            backend.socket.endSending()
            for _ in 0..<3 { _ = try await backend.answer().receipt() }
            #expect(try await backend.isHungUp())
        }
    }

    @Test(arguments: shardCounts)
    func `a status call tells of many devices in one answer`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let online = try await RawDevice(world)
        let first = try await online.register().cid
        let offline = try await RawDevice(world)
        let second = try await offline.register().cid
        try await offline.sayBye()
        let unknown = String(repeating: "f", count: 32)
        let backend = try await Backend(world)
        let answer = try await backend.call(
            "GET", "/v2/shop/user/status/\(first),\(second),\(unknown)", headers: ["token: \(backend.token)"])
        let data = try #require(try answer.object()["data"] as? [String: [String: String]])
        #expect(Set(data.keys) == [first.description, second.description])
        #expect(data[first.description]?["status"] == "online")
        #expect(data[second.description]?["status"] == "offline")
        let seen = try #require(data[second.description]?["last_login_time"].flatMap { Int64($0) })
        #expect(abs(WallClock().now.milliseconds - seen) < 60_000)
    }
}
