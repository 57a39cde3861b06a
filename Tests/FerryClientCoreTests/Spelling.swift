internal import FerryClientCore
internal import FerryCore
internal import FerryWire

/// Short texts of phases, events and actions, for tables that people review.
enum Spelling {
    static func of(_ phase: ClientStateMachine.Phase, now: Instant) -> String {
        func left(_ until: Instant) -> String { "\((until - now).inMilliseconds) ms" }
        switch phase {
        case .idle: return "idle"
        case .waiting(let until): return "waiting \(left(until))"
        case .connecting: return "connecting"
        case .awaitingChallenge: return "awaitingChallenge"
        case .awaitingRegistered: return "awaitingRegistered"
        case .awaitingWelcome: return "awaitingWelcome"
        case .attached(let attachment):
            let place = attachment.isInBackground ? "background" : "online"
            return attachment.resumesAwaited == 0 ? place : "\(place) awaiting \(attachment.resumesAwaited) resumed"
        case .asleep: return "asleep"
        case .stopped: return "stopped"
        }
    }

    static func of(_ actions: [ClientAction]) -> String {
        actions.isEmpty ? "-" : actions.map(of).joined(separator: ", ")
    }

    static func of(_ action: ClientAction) -> String {
        switch action {
        case .connect: "connect"
        case .send(let frame): "send \(of(frame))"
        case .prove(let frame): "prove \(of(frame))"
        case .save(let record): "save \(record.identity == nil ? "nobody" : "somebody") at \(record.lastSeq)"
        case .hand(let push): "hand \(push.seq)"
        case .handGap(let gap): "hand gap \(gap.seq)"
        case .close(let flushing): flushing ? "flush and close" : "close"
        case .tell(let notice): "tell \(of(notice))"
        }
    }

    static func of(_ frame: DeviceFrame) -> String {
        switch frame {
        case .hello: "hello"
        case .login(let login): "login after \(login.lastSeq)"
        case .register: "register"
        case .ack(let ack): "ack \(ack.seq)"
        case .ping: "ping"
        case .pong: "pong"
        case .background: "background"
        case .foreground(let foreground): "foreground after \(foreground.lastSeq)"
        case .bye: "bye"
        case .deviceToken: "device-token"
        case .unknownSkippable(let type): "type \(type)"
        }
    }

    static func of(_ notice: ClientNotice) -> String {
        switch notice {
        case .registered: "registered"
        case .online: "online"
        case .tokenSaved: "token saved"
        case .offline(let reason, .after(let delay)): "offline (\(reason)), back in \(delay.inMilliseconds) ms"
        case .offline(let reason, .inForeground): "offline (\(reason)), back in foreground"
        case .offline(let reason, .never): "offline (\(reason)) for good"
        case .stopped: "stopped"
        }
    }
}
