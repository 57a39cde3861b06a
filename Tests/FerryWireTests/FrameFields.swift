internal import FerryCore
internal import FerryWire
internal import Foundation

/// Frames as the vectors spell them: field name to text. Flags are cut to the bits that version 1 knows, and of the
/// extensions only the known ones stay.
enum FrameFields {
    static func of(_ frame: DeviceFrame) -> [String: String] {
        switch frame {
        case .hello(let hello):
            return ["type": "hello", "version": "\(hello.version)", "nonce": hello.nonce.hex]
        case .login(let login):
            return [
                "type": "login", "appId": login.appID.text, "cid": login.cid.description,
                "generation": "\(login.generation)", "epoch": login.epoch.description, "lastSeq": "\(login.lastSeq)",
                "proof": login.proof.hex,
            ].merging(of(login.wishes, login.extensions)) { $1 }
        case .register(let register):
            return [
                "type": "register", "appId": register.appID.text, "installationKey": register.installationKey.hex,
                "proof": register.proof.hex,
            ].merging(of(register.wishes, register.extensions)) { $1 }
        case .ack(let ack): return ["type": "ack", "seq": "\(ack.seq)"]
        case .ping: return ["type": "ping"]
        case .pong: return ["type": "pong"]
        case .background: return ["type": "background"]
        case .foreground(let foreground): return ["type": "foreground", "lastSeq": "\(foreground.lastSeq)"]
        case .bye: return ["type": "bye"]
        case .deviceToken(let token):
            return [
                "type": "device-token", "environment": "\(token.change.environmentByte)",
                "token": Hexadecimal.encode(token.change.tokenBytes),
            ]
        case .unknownSkippable: return [:]
        }
    }

    private static func of(_ wishes: AttachWishes, _ extensions: AttachExtensions) -> [String: String] {
        var fields = [
            "keepAlive": "\(wishes.keepAlive)", "window": "\(wishes.window)",
            "capabilities": "\(wishes.capabilities.rawValue)",
        ]
        if let token = extensions.deviceToken {
            fields["extension 1"] = Hexadecimal.encode([token.environmentByte] + token.tokenBytes)
        }
        if let info = extensions.clientInfo { fields["extension 2"] = info }
        return fields
    }

    static func of(_ frame: GatewayFrame) -> [String: String] {
        switch frame {
        case .challenge(let challenge):
            return ["type": "challenge", "version": "\(challenge.version)", "nonce": challenge.nonce.hex]
        case .registered(let registered):
            return [
                "type": "registered", "cid": registered.cid.description, "generation": "\(registered.generation)",
                "secret": registered.secret.hex, "proof": registered.proof.hex,
            ]
        case .welcome(let welcome):
            return [
                "type": "welcome", "sessionId": Epoch(welcome.sessionID.rawValue).description,
                "epoch": welcome.epoch.description,
                "flags": "\((welcome.isResumed ? 1 : 0) + (welcome.compressesPayloads ? 2 : 0))",
                "serverTime": "\(welcome.serverTime)", "keepAlive": "\(welcome.keepAlive)",
                "window": "\(welcome.window)", "windowBytes": "\(welcome.windowBytes)",
                "keptMessages": "\(welcome.keptMessages)", "keptBytes": "\(welcome.keptBytes)",
                "proof": welcome.proof.hex,
            ]
        case .push(let push):
            return [
                "type": "push", "seq": "\(push.seq)", "flags": "\(push.flags.rawValue & 15)",
                "msgid": push.messageID.description, "taskid": push.taskID, "payload": Hexadecimal.encode(push.payload),
            ]
        case .gap(let gap):
            return [
                "type": "gap", "seq": "\(gap.seq)", "upTo": "\(gap.upTo)", "count": "\(gap.count)",
                "reasons": "\(gap.expired) \(gap.overflowed) \(gap.other)",
            ]
        case .ping: return ["type": "ping"]
        case .pong: return ["type": "pong"]
        case .resumed(let resumed):
            return [
                "type": "resumed", "sessionId": Epoch(resumed.sessionID.rawValue).description,
                "flags": resumed.isResumed ? "1" : "0", "keptMessages": "\(resumed.keptMessages)",
                "keptBytes": "\(resumed.keptBytes)",
            ]
        case .tokenSaved(let saved):
            return ["type": "token-saved", "environment": "\(saved.environment?.rawValue ?? 0)"]
        case .close(let close):
            return [
                "type": "close", "code": "\(close.code.rawValue)", "text": close.text,
                "retryAfter": "\(close.retryAfter)",
            ]
        case .unknownSkippable: return [:]
        }
    }

    /// The same form of a vector's `frame` object.
    static func of(_ object: [String: Any]) throws -> [String: String] {
        var fields: [String: String] = [:]
        for (name, value) in object {
            switch name {
            case "flags":
                let known = ["resumed": 1, "push": 15][object["type"] as? String ?? ""] ?? 3
                fields[name] = "\((try Samples.unwrap(value as? Int)) & known)"
            case "reasons": fields[name] = try sums(try Samples.unwrap(value as? [[String: Any]]))
            case "extensions":
                for known in try Samples.unwrap(value as? [[String: Any]]) {
                    guard let tag = UInt64(number(known["tag"])), tag == 1 || tag == 2, isAttach(object),
                        fields["extension \(tag)"] == nil
                    else { continue }
                    let bytes = try ProtocolSpec.bytes(known["hex"])
                    fields["extension \(tag)"] =
                        tag == 1 ? Hexadecimal.encode(bytes) : String(decoding: bytes, as: UTF8.self)
                }
            case "payload", "token": fields[name] = Hexadecimal.encode(try ProtocolSpec.bytes(value))
            default: fields[name] = try text(value)
            }
        }
        return fields
    }

    /// Whether our encoder can write all of it: it writes no extension that it does not know, and gap reasons in order.
    static func hasOnlyKnownParts(_ object: [String: Any]) -> Bool {
        let reasons = (object["reasons"] as? [[String: Any]] ?? []).map { UInt64(number($0["code"])) ?? 0 }
        return reasons.allSatisfy { $0 == 1 || $0 == 2 } && reasons == Array(Set(reasons)).sorted()
    }

    private static func isAttach(_ object: [String: Any]) -> Bool {
        ["login", "register"].contains(object["type"] as? String)
    }

    private static func text(_ value: Any) throws -> String {
        if let object = value as? [String: Any] {
            return String(decoding: try ProtocolSpec.bytes(object), as: UTF8.self)
        }
        return number(value)
    }

    private static func number(_ value: Any?) -> String {
        if let text = value as? String { return text }
        return (value as? NSNumber)?.stringValue ?? ""
    }

    private static func sums(_ reasons: [[String: Any]]) throws -> String {
        var sums: [UInt64] = [0, 0, 0]
        for reason in reasons {
            let code = try Samples.unwrap(UInt64(number(reason["code"])))
            let count = try Samples.unwrap(UInt64(number(reason["count"])))
            let index = code == 1 ? 0 : code == 2 ? 1 : 2
            let (sum, overflow) = sums[index].addingReportingOverflow(count)
            sums[index] = overflow ? .max : sum
        }
        return sums.map(String.init).joined(separator: " ")
    }
}
