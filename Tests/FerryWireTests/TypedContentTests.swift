private import FerryCore
private import FerryWire
internal import Testing

struct TypedContentTests {
    /// What was read, by the names of the registry, as its vectors write it.
    private func fields(of content: NotificationContent) -> [String: String] {
        var found: [String: String] = [:]
        for (name, text) in [
            ("title", content.title), ("body", content.body), ("bigText", content.bigText),
            ("bigImage", content.bigImage), ("logo", content.logo), ("logoUrl", content.logoURL),
            ("channelId", content.channelID), ("channelName", content.channelName),
            ("clickTarget", content.clickTarget), ("ringName", content.ringName), ("threadId", content.threadID),
            ("category", content.category), ("wifiOnly", content.isWiFiOnly ? "1" : nil),
            ("clickType", content.click == .none ? nil : content.click.rawValue),
        ] as [(String, String?)] where text != nil && text != "" { found[name] = text }
        for (name, number) in [
            ("channelLevel", content.channelLevel), ("notifyId", content.notifyID),
            ("badgeAddition", content.badgeAddition), ("redisplayFrequency", content.redisplayFrequency),
            ("redisplayDuration", content.redisplayDuration), ("shownFrom", content.shownFrom),
            ("shownUntil", content.shownUntil),
        ] { found[name] = number.map { "\($0)" } }
        return found
    }

    private func fields(of content: RevokeContent) -> [String: String] {
        var found = ["taskid": content.taskID]
        if content.isForced { found["force"] = "1" }
        return found
    }

    @Test func `typed contents say what the vectors say, wherever they are cut`() throws {
        let cases = try Samples.unwrap(
            try ProtocolSpec.json("vectors/payload/contents.json")["cases"] as? [[String: Any]])
        #expect(cases.count > 8)
        for vector in cases {
            let payload = try ProtocolSpec.bytes(vector["hex"])
            var expected = try Samples.unwrap(vector["content"] as? [String: Any])
            let kind = expected.removeValue(forKey: "kind") as? String
            func read(_ bytes: ArraySlice<UInt8>) -> [String: String] {
                bytes.withUnsafeBytes {
                    kind == "revoke"
                        ? fields(of: RevokeContent(encoded: $0)) : fields(of: NotificationContent(encoded: $0))
                }
            }
            #expect(read(payload[...]) == expected.mapValues { "\($0)" }, "\(vector["name"] ?? "")")
            for end in payload.indices { _ = read(payload[..<end]) }
        }
    }

    @Test func `a content comes back as it was written`() throws {
        var content = NotificationContent()
        (content.title, content.body, content.bigText) = ("Tea", "at eight", "long")
        (content.click, content.clickTarget, content.notifyID) = (.payloadCustom, "{}", 7)
        (content.shownFrom, content.shownUntil, content.isWiFiOnly) = (1, 2, true)
        #expect(content.encoded.withUnsafeBytes { NotificationContent(encoded: $0) } == content)
        let revoke = RevokeContent(taskID: "RASS_1130_0", isForced: true)
        #expect(revoke.encoded.withUnsafeBytes { RevokeContent(encoded: $0) } == revoke)
    }

    @Test func `the fourth kind is known for a kind that this version does not know`() {
        for kind in ContentKind.allCases {
            #expect(PushFrame.Flags(kind, isOffLine: true).kind == kind)
            #expect(PushFrame.Flags(kind, isOffLine: true).contains(.offLine))
        }
        #expect(PushFrame.Flags(rawValue: 12).kind == nil)
    }
}
