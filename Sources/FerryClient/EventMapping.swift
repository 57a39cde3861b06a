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
