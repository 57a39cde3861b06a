internal import FerryAudience
internal import FerryCore
internal import FerryTestSupport
internal import Testing

@Suite struct AliasDirectoryTests {
    typealias Binding = AliasDirectory.Binding
    typealias Change = AliasDirectory.Change

    @Test func `a device has one name, and the last one drops the one before`() throws {
        var directory = AliasDirectory()
        #expect(try directory.bind([Binding(cid: cid(1), alias: "ann")], limit: 10) == [Change(cid(1), "ann")])
        #expect(try directory.bind([Binding(cid: cid(1), alias: "Ann")], limit: 10) == [Change(cid(1), "Ann")])
        #expect(directory.alias(of: cid(1)) == "Ann")
        #expect(directory.devices(of: "ann") == [])
        #expect(directory.devices(of: "Ann") == [cid(1)])
    }

    @Test func `a call that gives a name one device too many changes nothing`() throws {
        var directory = AliasDirectory()
        _ = try directory.bind((1...3).map { Binding(cid: cid($0), alias: "ann") }, limit: 3)
        _ = try directory.bind([Binding(cid: cid(9), alias: "bob")], limit: 3)
        let before = (1...9).map { directory.alias(of: cid($0)) }
        let bindings = [
            Binding(cid: cid(4), alias: "carl"), Binding(cid: cid(9), alias: "ann"),
            Binding(cid: cid(5), alias: "carl"),
        ]
        #expect(throws: AliasDirectory.Full(place: 1, alias: "ann", devices: 4)) {
            try directory.bind(bindings, limit: 3)
        }
        #expect((1...9).map { directory.alias(of: cid($0)) } == before)
        #expect(directory.devices(of: "ann") == [cid(1), cid(2), cid(3)].sorted())
        #expect(directory.devices(of: "carl") == [])
    }

    @Test func `a name that has more devices than a lower limit allows keeps them, and gets no more`() throws {
        var directory = AliasDirectory()
        let bindings = (1...10).map { Binding(cid: cid($0), alias: "ann") }
        _ = try directory.bind(bindings, limit: 10)
        #expect(try directory.bind(bindings, limit: 5).count == 10)
        #expect(throws: AliasDirectory.Full(place: 0, alias: "ann", devices: 11)) {
            try directory.bind([Binding(cid: cid(11), alias: "ann")], limit: 5)
        }
        // As many as before, though others.
        _ = try directory.bind(
            [Binding(cid: cid(1), alias: "bob"), Binding(cid: cid(11), alias: "ann")], limit: 5)
        #expect(directory.devices(of: "ann").count == 10)
    }

    @Test func `a name is counted when the whole call is done`() throws {
        var directory = AliasDirectory()
        _ = try directory.bind((1...3).map { Binding(cid: cid($0), alias: "ann") }, limit: 3)
        let changes = try directory.bind(
            [Binding(cid: cid(4), alias: "ann"), Binding(cid: cid(1), alias: "bob")], limit: 3)
        #expect(changes == [Change(cid(4), "ann"), Change(cid(1), "bob")])
    }

    @Test func `a call that changes nothing still names its rows`() throws {
        var directory = AliasDirectory()
        let bindings = [Binding(cid: cid(1), alias: "ann"), Binding(cid: cid(1), alias: "ann")]
        _ = try directory.bind(bindings, limit: 10)
        #expect(try directory.bind(bindings, limit: 10) == [Change(cid(1), "ann")])
    }

    @Test func `a device is taken from the name it has and from no other`() throws {
        var directory = AliasDirectory()
        _ = try directory.bind([Binding(cid: cid(1), alias: "ann"), Binding(cid: cid(2), alias: "ann")], limit: 10)
        #expect(directory.unbind([Binding(cid: cid(1), alias: "bob")]) == [Change(cid(1), "ann")])
        #expect(directory.unbind([Binding(cid: cid(1), alias: "ann")]) == [Change(cid(1), nil)])
        #expect(directory.devices(of: "ann") == [cid(2)])
        #expect(directory.drop("ann") == [Change(cid(2), nil)])
        #expect(directory.drop("ann") == [])
        #expect(directory.count == 0)
    }

    @Test(arguments: Effort.seeds(20))
    func `rows that were put make the same directory again`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        var directory = AliasDirectory()
        let app = try #require(AppID("shop"))
        var rows: [[UInt8]: [UInt8]] = [:]
        for _ in 0..<500 {
            let bindings = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                Binding(
                    cid: cid(UInt64.random(in: 0..<30, using: &random)),
                    alias: "name\(Int.random(in: 0..<6, using: &random))")
            }
            var changes: [Change] = []
            switch Int.random(in: 0..<8, using: &random) {
            case 0: changes = directory.drop(bindings[0].alias)
            case 1: changes = directory.remove(bindings[0].cid)
            case 2: changes = directory.unbind(bindings)
            default: changes = (try? directory.bind(bindings, limit: 4)) ?? []
            }
            for change in changes {
                rows[AliasRow.key(app, change.cid)] = change.alias.map { AliasRow.value($0) }
            }
            var again = AliasDirectory()
            for (key, value) in rows {
                let row = try #require(AliasRow.read(key: key, value: value))
                again.restore(row.cid, row.alias)
            }
            for number in 0..<30 as Range<UInt64> {
                #expect(again.alias(of: cid(number)) == directory.alias(of: cid(number)))
            }
            for name in 0..<6 {
                #expect(again.devices(of: "name\(name)") == directory.devices(of: "name\(name)"))
                #expect(directory.devices(of: "name\(name)").count <= 4)
            }
        }
    }

    @Test func `a damaged row is no row`() throws {
        let key = AliasRow.key(try #require(AppID("shop")), cid(1))
        let value = AliasRow.value("ann")
        for count in 0..<key.count { #expect(AliasRow.read(key: Array(key[..<count]), value: value) == nil) }
        for count in 0..<value.count { #expect(AliasRow.read(key: key, value: Array(value[..<count])) == nil) }
        #expect(AliasRow.read(key: key + [0], value: value) == nil)
        #expect(AliasRow.read(key: key, value: value + [0]) == nil)
    }

    /// "é" as one character, and as "e" with an accent behind it: the same to `String`, and two names.
    @Test func `names that differ in bytes only are two names`() throws {
        let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
        try #require(composed == decomposed)
        var directory = AliasDirectory()
        _ = try directory.bind([Binding(cid: cid(1), alias: composed)], limit: 1)
        _ = try directory.bind([Binding(cid: cid(2), alias: decomposed)], limit: 1)
        #expect(directory.devices(of: composed) == [cid(1)])
        #expect(directory.devices(of: decomposed) == [cid(2)])
        _ = directory.unbind([Binding(cid: cid(1), alias: decomposed)])
        #expect(directory.devices(of: composed) == [cid(1)])
        _ = try directory.bind([Binding(cid: cid(1), alias: decomposed)], limit: 2)
        #expect(directory.devices(of: composed) == [])
        #expect(directory.alias(of: cid(1)).map { Array($0.utf8) } == Array(decomposed.utf8))
        #expect(directory.drop(composed) == [])
        #expect(directory.drop(decomposed).count == 2)
    }
}
