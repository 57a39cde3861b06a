internal import FerryAudience
internal import FerryCore
internal import FerryTestSupport
internal import Testing

private func day(_ number: Int64) -> Instant { Instant(milliseconds: number * 86_400_000 + 5) }

private func profile(
    tags: [String] = [], region: String = "", phoneType: PhoneType? = nil, isBlocked: Bool = false
) -> DeviceProfile {
    var profile = DeviceProfile()
    profile.tags = tags
    profile.region = region
    profile.phoneType = phoneType
    profile.isBlocked = isBlocked
    return profile
}

/// All of an audience, slice by slice.
private func all(_ roster: DeviceRoster, _ audience: AudienceExpression, limit: Int = 3, visits: Int = 5) -> [CID] {
    var found: [CID] = []
    var cursor: CID?
    repeat {
        let slice = roster.slice(of: audience, after: cursor, limit: limit, visits: visits)
        found += slice.devices
        cursor = slice.cursor
    } while cursor != nil
    return found
}

@Suite struct DeviceRosterTests {
    typealias Condition = AudienceExpression.Condition

    @Test(arguments: [
        (AudienceExpression(), [1, 2, 3, 4, 5]),
        (AudienceExpression(tag: "vip"), [1, 2]),
        (AudienceExpression(tag: "nobody"), []),
        (AudienceExpression([Condition(.customTag, .or, ["vip", "new"])]), [1, 2, 3]),
        (AudienceExpression([Condition(.customTag, .and, ["vip", "new"])]), [2]),
        (AudienceExpression([Condition(.customTag, .not, ["vip", "new"])]), [4, 5]),
        (AudienceExpression([Condition(.phoneType, .or, ["ios"])]), [1, 4]),
        (AudienceExpression([Condition(.phoneType, .or, ["android", "ios"])]), [1, 2, 4]),
        (AudienceExpression([Condition(.phoneType, .and, ["android", "ios"])]), []),
        (AudienceExpression([Condition(.phoneType, .not, ["ios"])]), [2, 3, 5]),
        (AudienceExpression([Condition(.region, .or, ["11000000"])]), [1, 3]),
        (AudienceExpression([Condition(.region, .not, ["11000000"])]), [2, 4, 5]),
        (AudienceExpression([Condition(.region, .or, [""])]), []),
        (
            AudienceExpression([Condition(.customTag, .or, ["vip", "new"]), Condition(.region, .or, ["11000000"])]),
            [1, 3]
        ),
        (AudienceExpression([Condition(.customTag, .or, ["vip"]), Condition(.customTag, .not, ["new"])]), [1]),
    ])
    func `an audience has the devices that meet all conditions`(audience: AudienceExpression, expected: [UInt64]) {
        var roster = DeviceRoster()
        for number in 1...5 as ClosedRange<UInt64> {
            roster.register(cid(number), seenAt: day(1), hasToken: number == 4)
        }
        roster.set(profile(tags: ["vip"], region: "11000000", phoneType: .ios), of: cid(1))
        roster.set(profile(tags: ["vip", "new"], phoneType: .android), of: cid(2))
        roster.set(profile(tags: ["new"], region: "11000000"), of: cid(3))
        // A token is the better witness.
        roster.set(profile(phoneType: .android), of: cid(4))
        let wanted = expected.map { cid($0) }.sorted()
        for limit in 1...6 {
            for visits in 1...6 { #expect(all(roster, audience, limit: limit, visits: visits) == wanted) }
        }
    }

    @Test(arguments: Effort.seeds(10))
    func `a walk meets each device that stays, once, whatever changes meanwhile`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        var roster = DeviceRoster()
        var members: Set<CID> = []
        for number in 0..<600 as Range<UInt64> {
            roster.register(cid(number), seenAt: day(1), hasToken: false)
            if number % 3 == 0 {
                roster.set(profile(tags: ["a", "t\(number % 7)"]), of: cid(number))
                members.insert(cid(number))
            }
        }
        var stayed = members
        var found: [CID] = []
        var cursor: CID?
        repeat {
            let slice = roster.slice(of: AudienceExpression(tag: "a"), after: cursor, limit: 7, visits: 11)
            found += slice.devices
            cursor = slice.cursor
            for _ in 0..<5 {
                let device = cid(UInt64.random(in: 0..<700, using: &random))
                switch Int.random(in: 0..<3, using: &random) {
                case 0:
                    roster.remove(device)
                    stayed.remove(device)
                case 1:
                    if !roster.contains(device) { roster.register(device, seenAt: day(2), hasToken: false) }
                    roster.set(profile(tags: ["b", "a"]), of: device)
                default:
                    roster.set(profile(tags: ["b"]), of: device)
                    stayed.remove(device)
                }
            }
        } while cursor != nil
        #expect(found == found.sorted() && Set(found).count == found.count)
        #expect(stayed.isSubset(of: Set(found)))
    }

    @Test func `a small tag is found without a look at all devices`() {
        var roster = DeviceRoster()
        for number in 0..<10_000 as Range<UInt64> { roster.register(cid(number), seenAt: day(1), hasToken: false) }
        roster.set(profile(tags: ["rare"]), of: cid(77))
        roster.set(profile(tags: ["rare"]), of: cid(9_000))
        let slice = roster.slice(of: AudienceExpression(tag: "rare"), after: nil, limit: 10, visits: 3)
        #expect(slice.devices == [cid(77), cid(9_000)].sorted() && slice.cursor == nil)
    }

    @Test func `a row that comes before its device waits for it, and is told when none comes`() {
        var roster = DeviceRoster()
        roster.restore(profile(tags: ["a"], isBlocked: true), of: cid(1))
        roster.restore(profile(tags: ["a"]), of: cid(2))
        #expect(roster.count == 0 && all(roster, AudienceExpression(tag: "a")) == [])
        roster.register(cid(1), seenAt: day(1), hasToken: false)
        #expect(roster.orphans() == [cid(2)])
        #expect(all(roster, AudienceExpression(tag: "a")) == [cid(1)])
        #expect(roster.isBlocked(cid(1)) && roster.profile(of: cid(2)) == nil)
        roster.remove(cid(2))
        #expect(roster.orphans() == [] && roster.count == 1)
    }

    @Test func `nothing is left of devices that are gone`() {
        var roster = DeviceRoster()
        for number in 0..<500 as Range<UInt64> {
            roster.register(cid(number), seenAt: day(1), hasToken: false)
            roster.set(profile(tags: ["a", "b\(number)"]), of: cid(number))
        }
        #expect(roster.tagCount == 1_000 && roster.profileCount == 500)
        for number in 0..<500 as Range<UInt64> { roster.remove(cid(number)) }
        #expect(roster.count == 0 && roster.bytes == 0)
    }

    @Test func `what was not seen for long is found, day by day`() {
        var roster = DeviceRoster()
        for number in 0..<100 as Range<UInt64> {
            roster.register(cid(number), seenAt: day(Int64(number)), hasToken: false)
        }
        roster.saw(cid(3), at: day(90))
        var found: [CID] = []
        var cursor: CID?
        repeat {
            let slice = roster.unseen(since: day(10), after: cursor, visits: 7)
            found += slice.devices
            cursor = slice.cursor
        } while cursor != nil
        #expect(found == [0, 1, 2, 4, 5, 6, 7, 8, 9].map { cid($0) }.sorted())
    }

    @Test(arguments: [AudienceExpression.Field.customTag, .region])
    func `values that differ in bytes only are two values`(field: AudienceExpression.Field) throws {
        let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
        try #require(composed == decomposed)
        var roster = DeviceRoster()
        for (number, text) in [composed, decomposed].enumerated() {
            let device = cid(UInt64(number + 1))
            roster.register(device, seenAt: day(1), hasToken: false)
            roster.set(field == .region ? profile(region: text) : profile(tags: [text]), of: device)
        }
        func found(_ operation: AudienceExpression.Operation, _ values: [String]) -> [CID] {
            all(roster, AudienceExpression([Condition(field, operation, values)]))
        }
        #expect(found(.or, [composed]) == [cid(1)])
        #expect(found(.or, [decomposed]) == [cid(2)])
        #expect(found(.not, [composed]) == [cid(2)])
        #expect(found(.and, [composed, decomposed]) == [])
        // A change from the one to the other is one.
        roster.set(field == .region ? profile(region: composed) : profile(tags: [composed]), of: cid(2))
        #expect(Set(found(.or, [composed])) == [cid(1), cid(2)])
        #expect(found(.or, [decomposed]) == [])
    }

    @Test func `a value that stands in a condition twice counts once`() {
        var roster = DeviceRoster()
        roster.register(cid(1), seenAt: day(1), hasToken: true)
        roster.set(profile(tags: ["vip"]), of: cid(1))
        #expect(all(roster, AudienceExpression([Condition(.customTag, .and, ["vip", "vip"])])) == [cid(1)])
        #expect(all(roster, AudienceExpression([Condition(.phoneType, .and, ["ios", "ios"])])) == [cid(1)])
    }
}
