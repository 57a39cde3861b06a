internal import FerryAPNS
internal import FerryCore
internal import Foundation
internal import Testing

struct StubTests {
    private let composer = StubComposer(title: nil, text: "You have a \"new\" message")
    private let cid = CID(Identifier128(high: 1, low: 2))

    private func token(_ environment: PushEnvironment = .sandbox) throws -> PushToken {
        try #require(PushToken(environment: environment, bytes: [0xab, 0x0c]))
    }

    private func value(_ name: String, _ stub: StubRequest) -> String? {
        stub.headers.first { $0.name == name }?.value
    }

    private func aps(_ stub: StubRequest) throws -> [String: Any] {
        let object = try JSONSerialization.jsonObject(with: Data(stub.body)) as? [String: Any]
        return try #require(object?["aps"] as? [String: Any])
    }

    @Test func `A default stub is what APNs wants to hear`() throws {
        let stub = composer.standard(
            topic: "com.example.app", token: try token(), cid: cid, badge: 3, expiresAt: Instant(milliseconds: 9_876),
            identity: Identifier128(high: 0x0011_2233_4455_6677, low: 0x8899_aabb_ccdd_eeff))
        #expect(stub.host == "api.sandbox.push.apple.com")
        #expect(stub.path == "/3/device/ab0c")
        #expect(value("apns-topic", stub) == "com.example.app")
        #expect(value("apns-push-type", stub) == "alert")
        #expect(value("apns-priority", stub) == "10")
        #expect(value("apns-expiration", stub) == "9")
        #expect(value("apns-id", stub) == "00112233-4455-6677-8899-aabbccddeeff")
        #expect(value("apns-collapse-id", stub) == "ferry-\(cid)")
        #expect((value("apns-collapse-id", stub)?.utf8.count ?? 99) <= 64)
        let aps = try aps(stub)
        #expect(aps["badge"] as? Int == 3)
        #expect(aps["alert"] as? [String: String] == ["body": "You have a \"new\" message"])
    }

    @Test func `Stubs of one device replace each other and those of two do not`() throws {
        func collapse(_ cid: CID, _ badge: Int) throws -> String? {
            value(
                "apns-collapse-id",
                composer.standard(
                    topic: "t", token: try token(), cid: cid, badge: badge, expiresAt: .distantPast,
                    identity: cid.value))
        }
        #expect(try collapse(cid, 1) == collapse(cid, 2))
        #expect(try collapse(cid, 1) != collapse(CID(Identifier128(high: 1, low: 3)), 1))
    }

    @Test func `An own alert goes out as its sender wrote it`() throws {
        let body = Array(#"{"aps":{"alert":{"body":"hi"}},"payload":"x"}"#.utf8)
        let live = composer.own(
            topic: "t", token: try token(.production), body: body, collapseID: nil, isBackground: false, expiresAt: nil,
            identity: cid.value)
        #expect(live.host == "api.push.apple.com")
        #expect(live.body == body)
        #expect(value("apns-expiration", live) == "0")
        #expect(value("apns-collapse-id", live) == nil)
        let silent = composer.own(
            topic: "t", token: try token(), body: body, collapseID: "c", isBackground: true,
            expiresAt: Instant(milliseconds: 5_000), identity: cid.value)
        #expect(value("apns-push-type", silent) == "background")
        #expect(value("apns-priority", silent) == "5")
        #expect(value("apns-collapse-id", silent) == "c")
    }
}
