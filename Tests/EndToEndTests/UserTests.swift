private import FerryCore
private import FerryWire
private import Foundation
internal import Testing

/// Aliases, tags, profiles and the block list, against a real gateway that is killed now and then.
@Suite struct UserTests {
    private static let stranger = "00000000000000000000000000000001"

    private static func devices(_ world: World, _ count: Int) async throws -> [TestIdentity] {
        var identities: [TestIdentity] = []
        for _ in 0..<count {
            let device = try await RawDevice(world)
            identities.append(try await device.register())
            try await device.sayBye()
        }
        return identities
    }

    @Test(arguments: shardCounts)
    func `aliases are found both ways, and after a kill`(shards: Int) async throws {
        let world = try await World(shards: shards)
        var backend = try await Backend(world)
        let cids = try await Self.devices(world, 5).map(\.cid)
        #expect(try await backend.bind([(cids[0], "ann"), (cids[1], "ann"), (cids[2], "张三")]).code == 0)
        #expect(try await backend.bind([(cids[1], "bob")]).code == 0)
        for _ in 0..<2 {
            #expect(try await backend.alias(of: cids[0]) == "ann")
            #expect(try await backend.alias(of: cids[1]) == "bob")
            #expect(try await backend.alias(of: cids[3]) == "")
            #expect(try await backend.devices(of: "ann") == [cids[0].description])
            #expect(try await backend.devices(of: "%E5%BC%A0%E4%B8%89") == [cids[2].description])
            #expect(try await backend.devices(of: "nobody") == [])
            try await world.restartAfterKill()
            backend = try await Backend(world)
        }
        let pair = ["cid": cids[0].description, "alias": "ann"]
        #expect(try await backend.user("DELETE", "user/alias", ["data_list": [pair]]).code == 0)
        #expect(try await backend.user("DELETE", "user/alias/bob").code == 0)
        try await world.restartAfterKill()
        backend = try await Backend(world)
        #expect(try await backend.alias(of: cids[0]) == "")
        #expect(try await backend.alias(of: cids[1]) == "")
        #expect(try await backend.devices(of: "bob") == [])
    }

    @Test(arguments: shardCounts)
    func `a call with one wrong alias changes nothing and names it`(shards: Int) async throws {
        let world = try await World(shards: shards, ["aliasDevices": 2])
        let backend = try await Backend(world)
        let cids = try await Self.devices(world, 3).map(\.cid)
        let stranger = try #require(CID(hex: Self.stranger))
        let unknown = try await backend.bind([(cids[0], "ann"), (stranger, "ann")])
        #expect(unknown.status == 400 && unknown.code == 20001)
        #expect(unknown.message == #"target user is invalid: cid "\#(Self.stranger)" (in data_list[1])"#)
        let full = try await backend.bind([(cids[0], "ann"), (cids[1], "ann"), (cids[2], "ann")])
        #expect(
            full.message.contains(#"alias size over limit: "ann" would have 3 devices, at most 2 (in data_list[2])"#))
        for cid in cids { #expect(try await backend.alias(of: cid) == "") }
        // Another app's device does not exist here.
        let other = try await Backend(world, app: .second)
        #expect(try await other.bind([(cids[0], "ann")]).message.contains("target user is invalid"))
        #expect(try await other.user("GET", "user/alias/cid/\(cids[0])").code == 20001)
    }

    @Test(arguments: shardCounts)
    func `tags are set, read, added, taken away and counted, and survive a kill`(shards: Int) async throws {
        let world = try await World(shards: shards)
        var backend = try await Backend(world)
        let cids = try await Self.devices(world, 6).map(\.cid)
        #expect(try await backend.user("POST", "user/custom_tag/cid/\(cids[0])", ["custom_tag": ["a", "b"]]).code == 0)
        #expect(try await backend.user("POST", "user/custom_tag/cid/\(cids[1])", ["custom_tag": ["b"]]).code == 0)
        let body = ["cid": cids[0..<3].map(\.description) + [Self.stranger]]
        let set = try await backend.data("PUT", "user/custom_tag/batch/c%2Fd", body)
        #expect(set.count == 4 && set[Self.stranger] as? String == "false")
        #expect(cids[0..<3].allSatisfy { set[$0.description] as? String == "true" })
        for _ in 0..<2 {
            #expect(try await backend.tags(of: cids[0]) == ["a b c/d"])
            #expect(try await backend.tags(of: cids[3]) == [])
            func tagged(_ values: [String], _ operation: String) -> [String: Any] {
                ["key": "custom_tag", "values": values, "opt_type": operation]
            }
            #expect(try await backend.count([tagged(["b"], "or")]) == 2)
            #expect(try await backend.count([tagged(["a", "b"], "and")]) == 1)
            #expect(try await backend.count([tagged(["b"], "not")]) == 4)
            #expect(try await backend.count([tagged(["c/d"], "or"), tagged(["a"], "not")]) == 2)
            #expect(try await backend.count([["key": "phone_type", "values": ["ios"], "opt_type": "not"]]) == 6)
            try await world.restartAfterKill()
            backend = try await Backend(world)
        }
        let gone = try await backend.data("DELETE", "user/custom_tag/batch/b", ["cid": [cids[0].description]])
        #expect(gone[cids[0].description] as? String == "true")
        #expect(try await backend.tags(of: cids[0]) == ["a c/d"])
        #expect(
            try await backend.user("POST", "user/custom_tag/cid/\(Self.stranger)", ["custom_tag": ["a"]]).code == 20001)
    }

    @Test func `a device gets as many tags as it may have and no more`() async throws {
        let world = try await World(shards: 2, ["deviceTags": 2])
        let backend = try await Backend(world)
        let cid = try await Self.devices(world, 1)[0].cid
        #expect(try await backend.user("POST", "user/custom_tag/cid/\(cid)", ["custom_tag": ["a", "b"]]).code == 0)
        let body = ["cid": [cid.description]]
        #expect(try await backend.data("PUT", "user/custom_tag/batch/c", body)[cid.description] as? String == "false")
        #expect(try await backend.data("PUT", "user/custom_tag/batch/b", body)[cid.description] as? String == "true")
        #expect(try await backend.tags(of: cid) == ["a b"])
    }

    @Test(arguments: shardCounts)
    func `a profile is kept and told, and a token makes an iPhone`(shards: Int) async throws {
        let world = try await World(shards: shards)
        var backend = try await Backend(world)
        let device = try await RawDevice(world)
        let cid = try await device.register(token: StubTests.token).cid
        let plain = try await Self.devices(world, 1)[0].cid
        let profile: [String: Any] = [
            "phone_type": "android", "region": "11000000", "phone_model": "Pixel 11", "notifications": false,
        ]
        #expect(try await backend.user("PUT", "devices/\(plain)/profile", profile, version: "v1").code == 0)
        #expect(try await backend.user("PUT", "devices/\(Self.stranger)/profile", profile, version: "v1").code == 20001)
        #expect(try await backend.user("POST", "user/badge/cid/\(plain)", ["badge": "+3"]).code == 0)
        try await world.restartAfterKill()
        backend = try await Backend(world)
        let data = try await backend.data("GET", "user/detail/\(cid),\(plain),\(Self.stranger),x")
        #expect(data["invalidCids"] as? [String] == ["x", Self.stranger])
        let valid = try #require(data["validCids"] as? [String: [String: Any]])
        #expect(valid[cid.description]?["phone_type"] as? Int == 2)
        #expect(valid[cid.description]?["device_token"] as? String == StubTests.token)
        #expect(valid[cid.description]?["package_name"] as? String == "com.example.shop")
        #expect(valid[plain.description]?["phone_type"] as? Int == 1)
        #expect(valid[plain.description]?["phoneModel"] as? String == "Pixel 11")
        #expect(valid[plain.description]?["notificationSwitch"] as? Bool == false)
        #expect(valid[plain.description]?["client_app_id"] as? String == "shop")
        #expect(try await backend.count([["key": "phone_type", "values": ["ios"]]]) == 1)
        #expect(try await backend.count([["key": "region", "values": ["11000000"]]]) == 1)
        let statuses = try await backend.data("GET", "user/deviceStatus/\(cid),\(plain),\(Self.stranger)")
        #expect(statuses[cid.description] as? [String: String] == ["cid_status": "offline", "device_status": "online"])
        #expect(
            statuses[plain.description] as? [String: String] == ["cid_status": "offline", "device_status": "offline"])
        #expect(statuses.count == 2)
    }

    @Test(arguments: shardCounts)
    func `a push to an alias reaches each of its devices`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        var devices: [(device: RawDevice, cid: CID)] = []
        for _ in 0..<4 {
            let device = try await RawDevice(world)
            devices.append((device, try await device.register().cid))
        }
        try await devices[2].device.sayBye()
        try await backend.waitUntil(devices[2].cid, isOnline: false)
        #expect(
            try await backend.bind([0, 1, 2].map { (devices[$0].cid, "ann") } + [(devices[3].cid, "bob")]).code == 0)
        func body(_ alias: String, _ payload: String, _ id: String? = nil) -> [String: Any] {
            [
                "request_id": id ?? Backend.freshRequestID(), "audience": ["alias": [alias]],
                "push_message": ["transmission": payload], "settings": NSNull(),
            ]
        }
        let pushed = try await backend.data("POST", "push/single/alias", body("ann", "hello", "to-all-of-ann"))
        #expect(pushed.count == 1, "it is one task")
        #expect(
            pushed.values.first as? [String: String] == [
                devices[0].cid.description: "successed_online", devices[1].cid.description: "successed_online",
                devices[2].cid.description: "successed_offline",
            ])
        #expect(try await devices[0].device.take(1).map(\.text) == ["hello"])
        #expect(try await devices[1].device.take(1).map(\.text) == ["hello"])
        // The same once more: nothing new comes.
        let again = try await backend.data("POST", "push/single/alias", body("ann", "hello", "to-all-of-ann"))
        #expect(Set(again.keys) == Set(pushed.keys))
        let nobody = try await backend.user("POST", "push/single/alias", body("nobody", "lost"))
        #expect(nobody.code == 20001 && nobody.message == #"target user is invalid: alias "nobody" has no device"#)
        let batch = try await backend.data(
            "POST", "push/single/batch/alias",
            ["msg_list": [body("bob", "one"), body("nobody", "two"), body("ann", "three")]])
        #expect((batch["not_accepted"] as? [String: String])?["nobody"]?.contains("has no device") == true)
        #expect(batch.count == 3)
        #expect(try await devices[3].device.take(1).map(\.text) == ["one"])
        #expect(try await devices[1].device.take(1).map(\.text) == ["three"])
    }

    @Test(arguments: shardCounts)
    func `a blocked device gets nothing until it is unblocked, also after a kill`(shards: Int) async throws {
        let world = try await World(shards: shards)
        var backend = try await Backend(world)
        var device = try await RawDevice(world)
        let identity = try await device.register()
        let cid = identity.cid
        let receipts = try await backend.push(cid, "before")
        #expect(receipts.wasOnline)
        #expect(try await device.take(1).map(\.text) == ["before"])
        #expect(try await backend.user("POST", "user/black/cid/\(cid)").code == 0)
        let ignored = try await backend.push(cid, "lost", requestID: "pushed-while-blocked")
        #expect(ignored.status == "successed_ignore")
        try await world.restartAfterKill()
        backend = try await Backend(world)
        device = try await RawDevice(world)
        _ = try await device.login(identity)
        // A repeat is answered like the first, and another is ignored likewise.
        #expect(try await backend.push(cid, "lost", requestID: "pushed-while-blocked") == ignored)
        #expect(try await backend.push(cid, "lost too").status == "successed_ignore")
        let all: [String: Any] = [
            "request_id": Backend.freshRequestID(), "audience": "all", "push_message": ["transmission": "for all"],
        ]
        #expect(try await backend.user("POST", "push/all", all).code == 0)
        #expect(try await backend.user("DELETE", "user/black/cid/\(cid)").code == 0)
        try await backend.push(cid, "after")
        // What was for everybody meanwhile comes now, within its ttl.
        #expect(try await device.take(2).map(\.text) == ["for all", "after"])
        let unknown = try await backend.user("POST", "user/black/cid/\(cid),\(Self.stranger)")
        #expect(unknown.code == 20001 && unknown.message.contains(Self.stranger))
        #expect(try await backend.push(cid, "still there").wasOnline)
    }
}
