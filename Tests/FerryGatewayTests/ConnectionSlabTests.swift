@testable internal import FerryGateway
internal import Testing

struct ConnectionSlabTests {
    private func connection() -> Connection {
        var connection = Connection()
        connection.kind = .http
        return connection
    }

    @Test func `An event of a former life of a slot finds nobody`() throws {
        var slab = ConnectionSlab(capacity: 2)
        let first = slab.insert(connection()) ?? -1
        let token = slab.token(of: first)
        let found = slab.index(of: token)
        #expect(found == first)
        slab.remove(first)
        let gone = slab.index(of: token)
        #expect(gone == nil)
        let second = slab.insert(connection()) ?? -1
        let stale = slab.index(of: token)
        let fresh = slab.index(of: slab.token(of: second))
        #expect(second == first)
        #expect(stale == nil)
        #expect(fresh == second)
        for token: UInt64 in [.max, 1 << 32 | 17] {
            let nobody = slab.index(of: token)
            #expect(nobody == nil)
        }
    }

    @Test func `A full slab takes no more, and takes again what was freed`() throws {
        var slab = ConnectionSlab(capacity: 3)
        var slots: [Int?] = []
        for _ in 0..<4 { slots.append(slab.insert(connection())) }
        let count = slab.count
        #expect(slots == [0, 1, 2, nil])
        #expect(count == 3)
        slab.remove(1)
        let again = slab.insert(connection())
        #expect(again == 1)
    }
}
