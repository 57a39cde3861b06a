internal import FerryClient

extension DeviceEvent.Notification {
    /// What it says, by the names of the protocol's registry.
    var line: JSONLine {
        var line = JSONLine()
        line.set("title", title)
        line.set("body", body)
        for (name, text) in [
            ("bigText", bigText), ("bigImage", bigImage), ("logo", logo), ("logoUrl", logoURL),
            ("channelId", channelID),
            ("channelName", channelName), ("ringName", ringName), ("threadId", threadID), ("category", category),
        ] {
            if let text { line.set(name, text) }
        }
        for (name, number) in [
            ("channelLevel", channelLevel), ("notifyId", notifyID), ("badgeAddition", badgeAddition),
            ("redisplayFrequency", redisplayFrequency), ("redisplayDuration", redisplayDuration),
        ] {
            if let number { line.set(name, UInt64(clamping: number)) }
        }
        if let shownFrom { line.set("shownFrom", UInt64(clamping: shownFrom)) }
        if let shownUntil { line.set("shownUntil", UInt64(clamping: shownUntil)) }
        if isWiFiOnly { line.set("wifiOnly", true) }
        let (type, target): (String, String?) =
            switch click {
            case .intent(let target): ("intent", target)
            case .url(let target): ("url", target)
            case .payload(let target): ("payload", target)
            case .custom(let target): ("payload_custom", target)
            case .startApp(let target): ("startapp", target)
            case .none: ("none", nil)
            }
        line.set("clickType", type)
        if let target { line.set("clickTarget", target) }
        return line
    }
}
