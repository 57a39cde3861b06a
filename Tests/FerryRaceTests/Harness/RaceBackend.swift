internal import FerryCore
internal import Testing

/// A backend with one connection, over which requests follow each other without waiting.
final class RaceBackend {
    private let world: RaceWorld
    private let peer: RacePeer

    init(_ world: RaceWorld, shard: Int = 0) throws {
        self.world = world
        peer = try world.connect(backend: true, to: shard)
    }

    enum Answer: Equatable {
        case online(task: String)
        case offline(task: String)
        /// The gateway's code.
        case refused(Int)

        var task: String? {
            switch self {
            case .online(let task), .offline(let task): task
            case .refused: nil
            }
        }
    }

    /// The request is in the gateway's socket when this returns. `request` names it; `ttl` is in milliseconds, nil for live
    /// only; `alert` is the sender's own text for the wake-up.
    func post(
        _ payload: String, to device: RaceDevice, request: String? = nil, ttl: Int? = 86_400_000, alert: String? = nil
    ) {
        let aps = alert.map {
            #","push_channel":{"ios":{"type":"notify","aps":{"alert":{"title":"T","body":"\#($0)"}}}}"#
        }
        let id = request ?? "request-of-\(payload.prefix(19))"
        let body =
            #"{"request_id":"\#(id)","audience":{"cid":["\#(device.cid)"]},"settings":{"ttl":\#(ttl ?? -1)},"#
            + #""push_message":{"transmission":"\#(payload)"}\#(aps ?? "")}"#
        let head =
            "POST /v2/\(world.app.text)/push/single/cid HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n"
        peer.send(Array((head + body).utf8))
    }

    /// A request, as it travels.
    func send(_ request: [UInt8]) { peer.send(request) }

    func hangUp() { peer.close() }

    /// The answers that have come since the last look, in order.
    func answers() -> [Answer] {
        var found: [Answer] = []
        let bytes = peer.received()
        var rest = bytes[...]
        while let end = rest.firstRange(of: Array("\r\n\r\n".utf8)) {
            let head = String(decoding: rest[..<end.lowerBound], as: UTF8.self).lowercased()
            guard let length = Self.number(in: head, after: "content-length: "),
                rest.endIndex - end.upperBound >= length
            else { break }
            let body = String(decoding: rest[end.upperBound..<end.upperBound + length], as: UTF8.self)
            rest = rest[(end.upperBound + length)...]
            found.append(Self.read(body))
        }
        peer.take(bytes.count - rest.count)
        return found
    }

    private static func read(_ body: String) -> Answer {
        guard let start = body.firstRange(of: "RAS") else {
            return .refused(number(in: body, after: "\"code\":") ?? -1)
        }
        let task = String(body[start.lowerBound...].prefix { $0 != "\"" })
        return body.contains("successed_online") ? .online(task: task) : .offline(task: task)
    }

    private static func number(in text: String, after label: String) -> Int? {
        guard let found = text.firstRange(of: label) else { return nil }
        return Int(text[found.upperBound...].prefix { $0.isNumber })
    }
}

extension [RaceBackend.Answer] {
    var areOnline: [Bool] { map { if case .online = $0 { true } else { false } } }
}
