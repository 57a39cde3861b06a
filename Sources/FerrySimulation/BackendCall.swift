internal import FerryCore

/// What a backend asks of the gateway.
enum BackendCall {
    /// A post, by its number.
    case post(Int)
    /// A push to all, by the number of its first post.
    case postToAll(Int)
    /// A task with stored content, by the number of its first post.
    case createList(Int)
    /// A push to those that meet a condition, by the number of its first post.
    case postToTags(Int)
    /// Devices for such a task: posts that lie together.
    case postToList(Range<Int>)
    /// The request id of a post, with other content.
    case reuse(Int)
    /// Are these devices online?
    case status([Int])
    /// The end of a task, by the number of its first post.
    case stop(Int)
    /// The end of an API token, by its index.
    case revoke(Int)
    /// What happened to a device's messages, or to the one of this post; so many events at most.
    case timeline(device: Int, post: Int?, limit: Int)
    /// The end of a device; `isGone`: it has come already.
    case erase(Int, cid: String, isGone: Bool)
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
        case .createList(let first): Self.createList(world.ledger.posts[first], world, token, isOther: false)
        case .postToTags(let first): Self.postToTags(world.ledger.posts[first], world, token, isOther: false)
        case .postToList(let numbers): Self.postToList(numbers, world, token)
        case .reuse(let number) where world.ledger.posts[number].isListed:
            Self.createList(world.ledger.posts[number], world, token, isOther: true)
        case .reuse(let number) where world.ledger.posts[number].isTagged:
            Self.postToTags(world.ledger.posts[number], world, token, isOther: true)
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
        case .stop(let number):
            Self.bytes("DELETE /v2/\(world.app.text)/task/\(world.ledger.task(of: number) ?? "")", token)
        case .revoke(let index):
            Self.bytes("DELETE /v2/\(world.app.text)/auth/\(world.ledger.apiTokens[index].text)", token)
        case .erase(_, let cid, _): Self.bytes("DELETE /v1/\(world.app.text)/devices/\(cid)", token)
        case .timeline(let device, let post, let limit):
            Self.bytes(
                "GET /v1/\(world.app.text)/devices/\(world.cidText(device))/timeline?limit=\(limit)"
                    + (post.flatMap { world.ledger.posts[$0].taskID }.map { "&taskid=\($0)" } ?? ""), token)
        }
    }

    private static func push(_ post: Post, _ world: World, _ token: String, isOther: Bool) -> [UInt8] {
        let body =
            #"{"request_id":"\#(post.requestID)","audience":{"cid":["\#(world.cidText(post.device))"]},\#(content(post, isOther))}"#
        return bytes("POST /v2/\(world.app.text)/push/single/cid", token, body)
    }

    private static func content(_ post: Post, _ isOther: Bool) -> String {
        let strategy = post.strategy == 1 ? "" : #","strategy":{"default":\#(post.strategy)}"#
        // Some are slow.
        let speed = post.isTagged && (post.first ?? 0) % 3 == 0 ? #","speed":\#((post.first ?? 0) % 7 + 1)"# : ""
        return #""settings":{"ttl":\#(post.ttl == 0 ? -1 : post.ttl)\#(strategy)\#(speed)},"#
            + #""push_message":{"transmission":"\#(post.payload)\#(isOther ? "!" : "")"}\#(alert(post))"#
    }

    private static func alert(_ post: Post) -> String {
        guard post.hasOwnAlert else { return "" }
        let aps = #"{"alert":{"title":"T","body":"\#(post.alertMarker)"}}"#
        return #","push_channel":{"ios":{"type":"notify","aps":\#(aps)}}"#
    }

    private static func createList(_ post: Post, _ world: World, _ token: String, isOther: Bool) -> [UInt8] {
        let body = #"{"request_id":"\#(post.requestID)",\#(content(post, isOther))}"#
        return bytes("POST /v2/\(world.app.text)/push/list/message", token, body)
    }

    /// No device has the tag.
    private static func postToTags(_ post: Post, _ world: World, _ token: String, isOther: Bool) -> [UInt8] {
        let tags = #"[{"key":"custom_tag","values":["nobody"],"opt_type":"not"}]"#
        let body =
            #"{"request_id":"\#(post.requestID)","audience":{"tag":\#(tags)},\#(content(post, isOther))}"#
        return bytes("POST /v2/\(world.app.text)/push/tag", token, body)
    }

    private static func postToList(_ numbers: Range<Int>, _ world: World, _ token: String) -> [UInt8] {
        let cids = numbers.map { #""\#(world.cidText(world.ledger.posts[$0].device))""# }.joined(separator: ",")
        let task = numbers.first.flatMap { world.ledger.list(of: $0)?.taskID } ?? ""
        return bytes(
            "POST /v2/\(world.app.text)/push/list/cid", token, #"{"taskid":"\#(task)","audience":{"cid":[\#(cids)]}}"#)
    }

    private static func pushAll(_ post: Post, _ world: World, _ token: String, isOther: Bool) -> [UInt8] {
        let settings =
            (post.strategy == 1 ? "" : #","strategy":{"default":\#(post.strategy)}"#)
            + (post.speed == 0 ? "" : #","speed":\#(post.speed)"#)
        let schedule = post.scheduledAt.map { #","schedule_time":"\#($0.milliseconds)""# } ?? ""
        let body =
            #"{"request_id":"\#(post.requestID)","audience":"all","settings":{"ttl":\#(post.ttl == 0 ? -1 : post.ttl)\#(schedule)\#(settings)},"#
            + #""push_message":{"transmission":"\#(post.payload)\#(isOther ? "!" : "")"}\#(alert(post))}"#
        return bytes("POST /v2/\(world.app.text)/push/all", token, body)
    }

    /// The posts that the call is for; none for other calls.
    func posts(_ ledger: Ledger) -> Range<Int> {
        switch self {
        case .post(let number), .postToAll(let number), .postToTags(let number): ledger.ofOneCall(number)
        case .postToList(let numbers): numbers
        case .createList, .reuse, .status, .stop, .revoke, .timeline, .erase: 0..<0
        }
    }

    private static func bytes(_ what: String, _ token: String, _ body: String? = nil) -> [UInt8] {
        let length = body.map { "Content-Length: \($0.utf8.count)\r\n" } ?? ""
        return Array("\(what) HTTP/1.1\r\nHost: gateway\r\ntoken: \(token)\r\n\(length)\r\n\(body ?? "")".utf8)
    }
}
