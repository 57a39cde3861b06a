internal import FerryCore
@testable internal import FerryGateway
internal import FerryRouting
internal import FerrySession
internal import FerryWire
internal import Testing

struct ConfigurationKeyTests {
    private func configuration() throws -> GatewayConfiguration {
        GatewayConfiguration(identity: try #require(Identity(key: Array(repeating: 0, count: 32))))
    }

    @Test func `Every key has its own name and refuses what it cannot be`() throws {
        #expect(Set(ConfigurationKey.all.map(\.name)).count == ConfigurationKey.all.count)
        for key in ConfigurationKey.all {
            var configuration = try configuration()
            for wrong in [
                ConfigurationValue.flag(true), .other, .text(""), .integer(-1), .integer(.max), .integer(.min),
            ] {
                let problem = key.apply(wrong, &configuration)
                #expect(problem?.hasPrefix(key.name) == true, "\(key.name) took \(wrong)")
            }
        }
    }

    @Test(arguments: ["messageCap", "byteCap", "memoryBytes", "storeBytes"])
    func `No limit is said by a word, and 0 is refused with that word`(name: String) throws {
        let key = try #require(ConfigurationKey.all.first { $0.name == name })
        for wrong in [ConfigurationValue.integer(0), .text("0"), .text("Unlimited")] {
            var configuration = try configuration()
            let problem = try #require(key.apply(wrong, &configuration))
            #expect(problem.contains("\"unlimited\"") && problem.contains(name))
        }
    }

    @Test func `A value lands where its key says`() throws {
        var configuration = try configuration()
        func set(_ name: String, _ value: ConfigurationValue) throws {
            let key = try #require(ConfigurationKey.all.first { $0.name == name })
            #expect(key.apply(value, &configuration) == nil)
        }
        try set("reattachGraceMs", .integer(1_500))
        try set("messageCap", .integer(3))
        try set("stubText", .text("Hello"))
        try set("keepAliveDefaultSeconds", .integer(30))
        #expect(configuration.timelineAge == .seconds(86_400) && configuration.timelineBytes == 2 << 30)
        try set("timelineHours", .integer(2))
        try set("timelineBytes", .integer(1 << 20))
        #expect(configuration.timelineAge == .seconds(7_200) && configuration.timelineBytes == 1 << 20)
        try set("timelineBytes", .text("off"))
        #expect(configuration.timelineBytes == nil)
        #expect(configuration.compressionBytes == Int(WireLimits.compressionBytes))
        try set("compressionBytes", .integer(4_096))
        #expect(configuration.compressionBytes == 4_096)
        try set("compressionBytes", .text("off"))
        #expect(configuration.compressionBytes == nil)
        #expect(configuration.delivery.reattachGrace == .milliseconds(1_500))
        #expect(configuration.delivery.messageCap == 3)
        try set("byteCap", .text("unlimited"))
        try set("storeBytes", .integer(1_000))
        try set("memoryBytes", .text("unlimited"))
        try set("capPolicy", .text("refuse"))
        #expect(configuration.delivery.byteCap.isUnlimited)
        #expect(configuration.storeBytes == 1_000)
        #expect(configuration.memoryBytes?.isUnlimited == true)
        #expect(configuration.delivery.capPolicy == .refuse)
        #expect(configuration.stubText == "Hello")
        #expect(configuration.session.keepAliveDefault == .seconds(30))
    }
}
