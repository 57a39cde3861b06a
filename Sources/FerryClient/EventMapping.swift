internal import FerryClientCore
internal import FerryCore
internal import FerryWire

extension DeviceEvent.Message {
    init(_ push: PushFrame) {
        self.init(
            seq: push.seq.rawValue, messageID: push.messageID.description, taskID: push.taskID,
            isOffLine: push.flags.contains(.offLine), wasCompressed: push.flags.contains(.compressed),
            payload: push.payload)
    }
}

extension DeviceEvent {
    /// nil for a kind of content that this version does not know.
    init?(_ push: PushFrame) {
        let message = Message(push)
        switch push.flags.kind {
        case .transmission: self = .message(message)
        case .notification:
            self = .notification(
                Notification(message, push.payload.withUnsafeBytes { NotificationContent(encoded: $0) }))
        case .revoke:
            let content = push.payload.withUnsafeBytes { RevokeContent(encoded: $0) }
            self = .revoke(Revoke(message: message, oldTaskID: content.taskID, isForced: content.isForced))
        case nil: return nil
        }
    }
}

extension DeviceEvent.Notification {
    init(_ message: DeviceEvent.Message, _ content: NotificationContent) {
        self.init(
            message: message, title: content.title, body: content.body, bigText: content.bigText,
            bigImage: content.bigImage, logo: content.logo, logoURL: content.logoURL, channelID: content.channelID,
            channelName: content.channelName, channelLevel: content.channelLevel.map { Int(clamping: $0) },
            click: Click(content), notifyID: content.notifyID.map { Int(clamping: $0) }, ringName: content.ringName,
            badgeAddition: content.badgeAddition.map { Int(clamping: $0) }, threadID: content.threadID,
            redisplayFrequency: content.redisplayFrequency.map { Int(clamping: $0) },
            redisplayDuration: content.redisplayDuration.map { Int(clamping: $0) }, category: content.category,
            shownFrom: content.shownFrom.map { Int64(clamping: $0) },
            shownUntil: content.shownUntil.map { Int64(clamping: $0) }, isWiFiOnly: content.isWiFiOnly)
    }
}

extension DeviceEvent.Notification.Click {
    init(_ content: NotificationContent) {
        let target = content.clickTarget ?? ""
        switch content.click {
        case .intent: self = .intent(target)
        case .url: self = .url(target)
        case .payload: self = .payload(target)
        case .payloadCustom: self = .custom(target)
        case .startApp: self = .startApp(content.clickTarget)
        case .none: self = .none
        }
    }
}

extension DeviceEvent.Gap {
    init(_ gap: GapFrame) {
        self.init(
            seq: gap.seq.rawValue, count: gap.count, expired: gap.expired, overflowed: gap.overflowed, other: gap.other)
    }
}

extension DeviceEvent {
    init(_ notice: ClientNotice) {
        switch notice {
        case .registered(let cid): self = .registered(cid: cid.description)
        case .online(let cid, let keptMessages): self = .online(cid: cid.description, keptMessages: keptMessages)
        case .tokenSaved: self = .tokenSaved
        case .offline(let reason, let next):
            var code: UInt16?
            if case .closed(let closeCode, _) = reason { code = closeCode.rawValue }
            self = .offline(reason: reason.description, code: code, next: NextAttempt(next))
        case .stopped(.requested): self = .stopped(.requested)
        case .stopped(.closed(let code, let text)):
            self = .stopped(.refused(code: code.rawValue, text: text.isEmpty ? code.text : text))
        }
    }
}

extension DeviceEvent.NextAttempt {
    init(_ next: ClientNotice.NextAttempt) {
        switch next {
        case .after(let delay): self = .after(delay)
        case .inForeground: self = .inForeground
        case .never: self = .never
        }
    }
}
