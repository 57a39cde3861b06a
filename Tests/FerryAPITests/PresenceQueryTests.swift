internal import FerryAPI
internal import FerryCore
internal import Testing

struct PresenceQueryTests {
    private static let cid = "00112233445566778899aabbccddeeff"

    private func read(_ query: String) -> Result<PresenceQuery, APIError> {
        parse(.presence(query: query), "").map { call in
            guard case .presence(let query, _) = call else { return PresenceQuery(cids: []) }
            return query
        }
    }

    @Test func `without devices all are meant, and a device that stands twice is one`() throws {
        #expect(try read("").get().cids == nil)
        #expect(try read("x=y&cids=z").get().cids == nil)
        #expect(try read("cid=\(Self.cid),\(Self.cid)").get().cids == CID(hex: Self.cid).map { [$0] })
    }

    @Test func `a comma and digits may be percent-encoded, as URL writers do`() throws {
        let other = "ffeeddccbbaa99887766554433221100"
        let cids = try read("cid=\(Self.cid)%2C%66%66\(other.dropFirst(2))").get().cids
        #expect(cids == [Self.cid, other].compactMap { CID(hex: $0) })
    }

    @Test(arguments: [
        "cid=%", "cid=%2", "cid=%zz", "cid=", "cid", "cid=,", "cid=xyz", "cid=00,cid=00", "cid=\(cid)&cid=\(cid)",
    ])
    func `what names no device is refused`(query: String) { #expect(read(query).error != nil) }

    @Test func `of many devices there is a limit`() {
        let cids = (0...PresenceQuery.maximumCIDs).map { CID(Identifier128(high: 1, low: UInt64($0))).description }
        #expect(read("cid=" + cids.dropLast().joined(separator: ",")).error == nil)
        #expect(read("cid=" + cids.joined(separator: ",")).error != nil)
    }
}
