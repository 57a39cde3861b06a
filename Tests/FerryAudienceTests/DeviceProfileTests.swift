internal import FerryAudience
internal import FerryCore
internal import Testing

@Suite struct DeviceProfileTests {
    static let samples: [DeviceProfile] = {
        var samples = [DeviceProfile()]
        for badge in [nil, 0, 7, DeviceProfile.maximumBadge] {
            for notifications in [nil, true, false] {
                for phoneType in [nil, PhoneType.android, .ios] {
                    var profile = DeviceProfile()
                    profile.badge = badge
                    profile.notifications = notifications
                    profile.phoneType = phoneType
                    profile.isBlocked = badge == 7
                    profile.region = badge == nil ? "" : "上海"
                    profile.model = notifications == nil ? "" : "iPhone17,1"
                    profile.tags = badge == 0 ? [] : ["vip", "2026", "会员"]
                    samples.append(profile)
                }
            }
        }
        return samples
    }()

    @Test(arguments: samples) func `a row is read as it was written`(profile: DeviceProfile) throws {
        let app = try #require(AppID("shop"))
        let row = profile.row(of: app)
        let found = try #require(DeviceProfile.read(row))
        #expect(found.app == app && found.profile == profile)
        for count in 0..<row.count { #expect(DeviceProfile.read(Array(row[..<count])) == nil) }
        #expect(DeviceProfile.read(row + [0]) == nil)
        var later = row
        later[0] = 2
        #expect(DeviceProfile.read(later) == nil)
    }

    @Test func `a badge that was written above its range costs nothing else of the profile`() throws {
        let app = try #require(AppID("shop"))
        var profile = DeviceProfile()
        profile.tags = ["vip"]
        profile.isBlocked = true
        profile.badge = DeviceProfile.maximumBadge + 8
        let found = try #require(DeviceProfile.read(profile.row(of: app)))
        #expect(found.profile.tags == ["vip"] && found.profile.isBlocked)
        #expect(found.profile.badge == DeviceProfile.maximumBadge)
    }

    @Test func `as many and as long tags as a device may ever have are read again`() throws {
        let app = try #require(AppID("shop"))
        var profile = DeviceProfile()
        profile.tags = (0..<20_000).map { "\($0)" } + [String(repeating: "\u{1F6A2}", count: 65_536)]
        let found = try #require(DeviceProfile.read(profile.row(of: app)))
        #expect(found.profile == profile)
    }

    @Test(arguments: [
        ("+1", BadgeChange.add(1)), ("-12", .add(-12)), ("0", .set(0)), ("5", .set(5)),
        ("999999999", .set(999_999_999)),
    ]) func `a change of the badge is read`(text: String, change: BadgeChange) {
        #expect(BadgeChange(text) == change)
    }

    @Test(arguments: ["", "+", "-", "x", "1x", "+-1", " 1", "1.0", "1234567890", "٣"])
    func `another text is no change of the badge`(text: String) { #expect(BadgeChange(text) == nil) }

    @Test func `a badge stays within its range`() {
        #expect(BadgeChange.add(-5).applied(to: 3) == 0)
        #expect(BadgeChange.add(-5).applied(to: nil) == 0)
        #expect(BadgeChange.add(2).applied(to: nil) == 2)
        #expect(BadgeChange.add(999_999_999).applied(to: DeviceProfile.maximumBadge) == DeviceProfile.maximumBadge)
        #expect(BadgeChange.set(4).applied(to: 9) == 4)
    }
}
