internal import FerryCore
@testable internal import FerryGateway
internal import FerryWire
internal import Testing

struct IdentityTests {
    private func identity(_ byte: UInt8 = 1) throws -> Identity {
        try #require(Identity(key: Array(repeating: byte, count: 32)))
    }

    private func app(_ id: String = "app", master: String = "m") throws -> App {
        App(
            id: try #require(AppID(id)), key: "k", secret: "s", masterSecret: master, name: nil, topic: nil)
    }

    private func key(_ byte: UInt8) throws -> Bytes32 { try #require(Bytes32(Array(repeating: byte, count: 32))) }

    @Test func `One installation is one cid, for ever, and no two share one`() throws {
        let app = try app().id
        let first = try identity().cid(app: app, installationKey: try key(1))
        #expect(try identity().cid(app: app, installationKey: try key(1)) == first)
        #expect(try identity().cid(app: app, installationKey: try key(2)) != first)
        #expect(try identity().cid(app: try self.app("other").id, installationKey: try key(1)) != first)
        #expect(try identity(2).cid(app: app, installationKey: try key(1)) != first)
    }

    /// Devices in the field hold these: another value locks all of them out.
    @Test func `A device's secret never changes`() throws {
        let app = try app().id
        let cid = try #require(CID(hex: "00112233445566778899aabbccddeeff"))
        let secret = try identity().deviceSecret(app: app, cid: cid, generation: 1)
        #expect(secret.hex == Self.goldenSecret)
        #expect(try identity().deviceSecret(app: app, cid: cid, generation: 2) != secret)
        #expect(try identity().cid(app: app, installationKey: try key(9)).description == Self.goldenCID)
    }

    @Test func `An API token is good for its app and its master secret alone`() throws {
        let expiry = Instant(milliseconds: 1_234_567)
        let token = try identity().apiToken(app: try app(), expiresAt: expiry, nonce: Array(repeating: 7, count: 8))
        #expect(try identity().expiry(ofAPIToken: token, app: try app()) == expiry)
        #expect(try identity().expiry(ofAPIToken: token, app: try app("other")) == nil)
        #expect(try identity().expiry(ofAPIToken: token, app: try app(master: "rotated")) == nil)
        #expect(try identity(2).expiry(ofAPIToken: token, app: try app()) == nil)
    }

    @Test func `A forged, cut or lengthened API token is none`() throws {
        let token = try identity().apiToken(
            app: try app(), expiresAt: Instant(milliseconds: 5), nonce: Array(repeating: 7, count: 8))
        for index in token.indices {
            var forged = Array(token)
            forged[token.distance(from: token.startIndex, to: index)] = token[index] == "0" ? "1" : "0"
            #expect(try identity().expiry(ofAPIToken: String(forged), app: try app()) == nil)
        }
        for text in ["", "00", String(token.dropLast()), token + "00", String(repeating: "z", count: 64)] {
            #expect(try identity().expiry(ofAPIToken: text, app: try app()) == nil)
        }
    }

    @Test func `An identity key of another size is refused`() {
        #expect(Identity(key: Array(repeating: 1, count: 31)) == nil)
        #expect(Identity(key: Array(repeating: 1, count: 33)) == nil)
    }

    private static let goldenSecret = "356be23d0973a308e4b2b8983ed1f4208fd6ca9f1153b2a1cf8eeb95001f15d9"
    private static let goldenCID = "1c505f0badc7afa94067e5ecbd9a95dc"
}
