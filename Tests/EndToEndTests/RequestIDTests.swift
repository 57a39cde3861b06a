private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// A backend that repeats a call gets the first result (P3).
@Suite struct RequestIDTests {
    @Test(arguments: shardCounts)
    func `a repeat gets the first answer and is delivered once`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        let first = try await backend.push(identity.cid, "once", requestID: "request-0001")
        for _ in 0..<3 {
            #expect(try await backend.push(identity.cid, "once", requestID: "request-0001") == first)
            #expect(try await Backend(world).push(identity.cid, "once", requestID: "request-0001") == first)
        }
        #expect(try await device.push().taskID == first.taskID)
        #expect(try await device.settled().isEmpty)
        // The first answer stands, whatever the device is now.
        try await device.sayBye()
        #expect(try await backend.push(identity.cid, "once", requestID: "request-0001") == first)
    }

    @Test(arguments: shardCounts)
    func `repeats at once, over one connection and over many, are one message`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        var backends: [Backend] = []
        for _ in 0..<6 { backends.append(try await Backend(world)) }
        for round in 0..<10 {
            let body = try Backend.pushBody(identity.cid, "round \(round)", requestID: "concurrent-\(round)")
            for backend in backends {
                let request = backend.pushRequest(body)
                try await backend.socket.send(request + request + request)
            }
            var tasks: Set<String> = []
            for backend in backends {
                for _ in 0..<3 { tasks.insert(try await backend.answer().receipt().taskID) }
            }
            #expect(tasks.count == 1)
            let push = try await device.push()
            #expect(push.text == "round \(round)")
            #expect(tasks == [push.taskID])
        }
        #expect(try await device.settled().isEmpty)
    }

    @Test(arguments: shardCounts)
    func `a repeat with other content is refused by name, also after a kill`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let first = try await Backend(world).push(identity.cid, "content", requestID: "request-0002")
        for isRestarted in [false, true] {
            if isRestarted { try await world.restartAfterKill() }
            let backend = try await Backend(world)
            let others = [
                try await backend.send(identity.cid, "other content", requestID: "request-0002"),
                try await backend.send(identity.cid, "content", requestID: "request-0002", ttl: 5),
                try await backend.send(
                    identity.cid, "content", requestID: "request-0002", ios: ["aps": ["alert": ["body": "x"]]]),
            ]
            for answer in others {
                #expect(answer.status == 400 && answer.code == 20001)
                #expect(answer.message.contains("request_id") && answer.message.contains("request-0002"))
            }
            let again = try await backend.push(identity.cid, "content", requestID: "request-0002")
            #expect(again.taskID == first.taskID)
        }
        let after = try await RawDevice(world)
        try await after.login(identity)
        #expect(try await after.take(1).map(\.text) == ["content"])
        #expect(try await after.settled().isEmpty)
    }

    @Test(arguments: shardCounts)
    func `one request id to two devices, or of two apps, means two messages`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let devices = [
            try await RawDevice(world), try await RawDevice(world), try await RawDevice(world, app: .second),
        ]
        let backends = [
            try await Backend(world), try await Backend(world), try await Backend(world, app: .second),
        ]
        var tasks: Set<String> = []
        for (device, backend) in zip(devices, backends) {
            let cid = try await device.register().cid
            tasks.insert(try await backend.push(cid, "to \(cid)", requestID: "request-0003").taskID)
            #expect(try await device.push().text == "to \(cid)")
        }
        #expect(tasks.count == 3)
    }

    @Test(arguments: shardCounts)
    func `a refused call leaves its request id free`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        let cid = try #require(CID(hex: "00112233445566778899aabbccddeeff"))
        for _ in 0..<2 {
            let answer = try await backend.send(cid, "for nobody", requestID: "request-0004")
            #expect(answer.code == 20001)
            #expect(answer.message.contains("target user is invalid") && answer.message.contains(cid.description))
        }
    }
}
