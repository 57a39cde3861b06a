internal import FerryCore

/// What a backend asks of the gateway.
enum BackendCall {
    /// A post, by its number.
    case post(Int)
    /// A push to all, by the number of its first post.
    case postToAll(Int)
    /// The request id of a post, with other content.
    case reuse(Int)
    /// Are these devices online?
    case status([Int])
    /// The end of an API token, by its index.
    case revoke(Int)
    /// What happened to a device's messages, or to the one of this post; so many events at most.
    case timeline(device: Int, post: Int?, limit: Int)
}

/// A call whose answer has not come.
struct OpenCall {
    let call: BackendCall
    /// Of the token that it was sent with.
    let token: Int
    let hadEnded: Bool
    let sentStep: Int
}

extension BackendCall {
    /// The request's bytes.
    func request(_ world: World, token: String) -> [UInt8] {
        switch self {
        case .post(let number): Self.push(world.ledger.posts[number], world, token, isOther: false)
        case .postToAll(let number): Self.pushAll(world.ledger.posts[number], world, token, isOther: false)
        case .reuse(let number):
            if world.ledger.posts[number].isForAll {
                Self.pushAll(world.ledger.posts[number], world, token, isOther: true)
            } else {
                Self.push(world.ledger.posts[number], world, token, isOther: true)
            }
        case .status(let devices):
            Self.bytes(
                "GET /v2/\(world.app.text)/user/status/\(devices.map { world.cidText($0) }.joined(separator: ","))",
                token)
        case .revoke(let index):
            Self.bytes("DELETE /v2/\(world.app.text)/auth/\(world.ledger.apiTokens[index].text)", token)
        case .timeline(let device, let post, let limit):
            Self.bytes(
                "GET /v1/\(world.app.text)/devices/\(world.cidText(device))/timeline?limit=\(limit)"
                    + (post.flatMap { world.ledger.posts[$0].taskID }.map { "&taskid=\($0)" } ?? ""), token)
        }
    }

    private static func push(_ post: Post, _ world: World, _ token: String, isOther: Bool) -> [UInt8] {
        var alert = ""
        if post.hasOwnAlert {
            let aps = #"{"alert":{"title":"T","body":"\#(post.alertMarker)"}}"#
            alert = #","push_channel":{"ios":{"type":"notify","aps":\#(aps)}}"#
        }
        let ttl = post.ttl == 0 ? -1 : post.ttl
        let strategy = post.strategy == 1 ? "" : #","strategy":{"default":\#(post.strategy)}"#
        let body =
            #"{"request_id":"\#(post.requestID)","audience":{"cid":["\#(world.cidText(post.device))"]},"#
            + #""settings":{"ttl":\#(ttl)\#(strategy)},"#
            + #""push_message":{"transmission":"\#(post.payload)\#(isOther ? "!" : "")"}\#(alert)}"#
        return bytes("POST /v2/\(world.app.text)/push/single/cid", token, body)
    }

    private static func pushAll(_ post: Post, _ world: World, _ token: String, isOther: Bool) -> [UInt8] {
        let body =
            #"{"request_id":"\#(post.requestID)","audience":"all","settings":{"ttl":\#(post.ttl == 0 ? -1 : post.ttl)},"#
            + #""push_message":{"transmission":"\#(post.payload)\#(isOther ? "!" : "")"}}"#
        return bytes("POST /v2/\(world.app.text)/push/all", token, body)
    }

    /// The posts that the call is for; none for other calls.
    func posts(_ ledger: Ledger) -> Range<Int> {
        switch self {
        case .post(let number), .postToAll(let number): ledger.ofOneCall(number)
        case .reuse, .status, .revoke, .timeline: 0..<0
        }
    }

    private static func bytes(_ what: String, _ token: String, _ body: String? = nil) -> [UInt8] {
        let length = body.map { "Content-Length: \($0.utf8.count)\r\n" } ?? ""
        return Array("\(what) HTTP/1.1\r\nHost: gateway\r\ntoken: \(token)\r\n\(length)\r\n\(body ?? "")".utf8)
    }
}
