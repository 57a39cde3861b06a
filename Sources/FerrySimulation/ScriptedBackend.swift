internal import FerryCore

/// A backend: posts over HTTP or a link, several at once on one connection, and posts again what it has no answer for.
final class ScriptedBackend {
    private let number: Int
    private let world: World
    private(set) var link: Link?
    private var inbox: [UInt8] = []
    /// Posts that wait for their answer, in order.
    private(set) var open: [Int] = []
    /// Posts that need another attempt.
    private(set) var unanswered: [Int] = []
    private var connections = 0
    private var place = 0
    /// Of a backend that has a link.
    private var speech: LinkSpeech?

    init(number: Int, world: World) {
        self.number = number
        self.world = world
    }

    func post(_ number: Int) {
        guard let cid = world.ledger.devices[world.ledger.posts[number].device].cid else { return }
        if link == nil { connect() }
        guard let link, speech?.isOpen != false else {
            if !unanswered.contains(number) { unanswered.append(number) }
            return
        }
        unanswered.removeAll { $0 == number }
        place += 1
        world.ledger.sent(number, connection: self.number * 1_000_000 + connections, place: place)
        open.append(number)
        world.trace.note(
            "post", number, world.ledger.posts[number].device, world.ledger.posts[number].attempts,
            "ttl \(world.ledger.posts[number].ttl) of \(cid)")
        link.send(
            world.isOverLinks
                ? LinkSpeech.push(world.ledger.posts[number], cid) : request(world.ledger.posts[number], cid))
    }

    func postAgain() {
        if let number = world.dice.pick(unanswered) { post(number) }
    }

    func postAllAgain() {
        for number in unanswered { post(number) }
    }

    private func connect() {
        link = world.connect(device: nil)
        connections += 1
        inbox = []
        guard world.isOverLinks, let link else { return }
        let speech = LinkSpeech(app: world.app)
        self.speech = speech
        link.send(speech.hello)
    }

    private func request(_ post: Post, _ cid: CID) -> [UInt8] {
        var alert = ""
        if post.hasOwnAlert {
            let aps = #"{"alert":{"title":"T","body":"\#(post.alertMarker)"}}"#
            alert = #","push_channel":{"ios":{"type":"notify","aps":\#(aps)}}"#
        }
        let ttl = post.ttl == 0 ? -1 : post.ttl
        let body =
            #"{"request_id":"\#(post.requestID)","audience":{"cid":["\#(cid)"]},"settings":{"ttl":\#(ttl)},"#
            + #""push_message":{"transmission":"\#(post.payload)"}\#(alert)}"#
        let head =
            "POST /v2/\(world.app.text)/push/single/cid HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n"
        return Array((head + body).utf8)
    }

    func turn() {
        guard let link else { return }
        inbox.append(contentsOf: link.deliver(world.portion()))
        if world.isOverLinks {
            takeLinkFrames()
        } else {
            while let answer = nextAnswer() { take(answer) }
        }
        if link.isOverForPeer { lose() }
    }

    /// Hangs up, or was hung up on: what is open has no answer.
    func lose() {
        link?.peerCloses()
        link = nil
        speech = nil
        for number in open {
            world.ledger.answerLost(number)
            if !unanswered.contains(number) { unanswered.append(number) }
        }
        open = []
    }

    // MARK: - Over a link

    private func takeLinkFrames() {
        while speech != nil {
            let heard: LinkSpeech.Heard?
            do throws(Violation) {
                heard = try speech?.hear(&inbox)
            } catch {
                world.report(error)
                return
            }
            switch heard {
            case nil: return
            case .say(let bytes): link?.send(bytes)
            case .opened: postAllAgain()
            case .closed: return
            case .outcomes(let outcomes): for code in outcomes { take(code: code) }
            }
        }
    }

    /// The outcome of the oldest open post; nil: accepted.
    private func take(code: UInt64?) {
        guard !open.isEmpty else {
            world.report(Violation(promise: "P2", what: "a link got an answer that it did not ask for"))
            return
        }
        let number = open.removeFirst()
        world.trace.note("link answer", number, Int(code ?? 0))
        switch code {
        case nil:
            world.check { () throws(Violation) in
                try world.ledger.accepted(number, taskID: nil, wasOnline: nil)
            }
        case 30_019:
            world.ledger.refused(number)
            if !world.ledger.posts[number].isAccepted, !unanswered.contains(number) { unanswered.append(number) }
        case .some(let code):
            world.report(Violation(promise: "API", what: "post \(number) was refused over a link with \(code)"))
        }
    }

    // MARK: - Over HTTP

    private func nextAnswer() -> String? {
        guard let end = inbox.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let head = String(decoding: inbox[..<end.lowerBound], as: UTF8.self).lowercased()
        let length = Post.number(in: Array(head.utf8), after: "content-length: ") ?? 0
        guard inbox.count >= end.upperBound + length else { return nil }
        let answer = String(decoding: inbox[..<(end.upperBound + length)], as: UTF8.self)
        inbox.removeFirst(end.upperBound + length)
        return answer
    }

    private func take(_ answer: String) {
        guard !open.isEmpty else {
            world.report(Violation(promise: "P2", what: "a backend got an answer that it did not ask for"))
            return
        }
        let number = open.removeFirst()
        world.trace.note("answer", number, answer.utf8.count, 0, answer)
        guard let start = answer.firstRange(of: "RAS") else {
            guard answer.contains("30019") else {
                world.report(Violation(promise: "API", what: "post \(number) was answered with \(answer)"))
                return
            }
            world.ledger.refused(number)
            if !world.ledger.posts[number].isAccepted, !unanswered.contains(number) { unanswered.append(number) }
            return
        }
        let task = String(answer[start.lowerBound...].prefix { $0 != "\"" })
        let wasOnline = answer.contains("successed_online")
        world.check { () throws(Violation) in
            try world.ledger.accepted(number, taskID: task, wasOnline: wasOnline)
        }
    }

    var hasAllAnswers: Bool { open.isEmpty && unanswered.isEmpty }
}
