internal import FerryCore

/// A backend: calls over HTTP or posts over a link, several at once on one connection, and posts again what it has no answer for.
final class ScriptedBackend {
    private let number: Int
    private let world: World
    private(set) var link: Link?
    private var inbox: [UInt8] = []
    /// Calls that wait for their answer, in order.
    private(set) var open: [OpenCall] = []
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
        let first = world.ledger.posts[number]
        guard first.isForAll || first.isTagged || world.ledger.devices[first.device].cid != nil else { return }
        let call: BackendCall =
            first.isForAll
            ? .postToAll(number)
            : first.isTagged
                ? .postToTags(number) : first.isListed ? .postToList(number..<number + 1) : .post(number)
        guard send(call) else {
            if !unanswered.contains(number) { unanswered.append(number) }
            return
        }
        unanswered.removeAll { $0 == number }
        place += 1
        let post = world.ledger.posts[number]
        for post in world.ledger.ofOneCall(number) {
            world.ledger.sent(post, connection: self.number * 1_000_000 + connections, place: place)
        }
        world.trace.note("post", number, post.device, post.attempts + 1, "ttl \(post.ttl)")
    }

    /// Names devices for a task with stored content, several in one call.
    func post(toList numbers: Range<Int>) {
        guard send(.postToList(numbers)) else { return }
        place += 1
        for number in numbers {
            unanswered.removeAll { $0 == number }
            world.ledger.sent(number, connection: self.number * 1_000_000 + connections, place: place)
        }
        world.trace.note("post to list", numbers.lowerBound, numbers.count)
    }

    /// Any other call; nothing when nobody listens.
    func call(_ call: BackendCall) {
        // A link carries posts only.
        guard !world.isOverLinks, send(call) else { return }
        world.trace.note("call", number, open.count, 0, "\(call)")
        if case .revoke(let token) = call { world.ledger.apiTokens[token].isEnding = true }
        if case .stop(let number) = call { world.ledger.stopping(number) }
    }

    private func send(_ call: BackendCall) -> Bool {
        if link == nil { connect() }
        guard let link, speech?.isOpen != false else { return false }
        let token = world.pickAPIToken()
        let facts = world.ledger.apiTokens[token]
        open.append(OpenCall(call: call, token: token, hadEnded: facts.hasEnded, sentStep: world.trace.step))
        if world.isOverLinks, case .post(let number) = call {
            guard let bytes = LinkSpeech.push(world.ledger.posts[number], world) else { return false }
            link.send(bytes)
        } else {
            link.send(call.request(world, token: facts.text))
        }
        return true
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
        for call in open {
            loseAnswer(of: call.call)
        }
        open = []
    }

    /// The gateway may have taken it.
    private func loseAnswer(of call: BackendCall) {
        let posts = call.posts(world.ledger)
        for post in posts { world.ledger.answerLost(post) }
        postLater(posts)
    }

    /// To all it is one call; for a task each device is named again by itself.
    private func postLater(_ posts: Range<Int>) {
        guard let first = posts.first else { return }
        for number in world.ledger.posts[first].isListed ? posts : first..<first + 1
        where !world.ledger.posts[number].isAccepted && !unanswered.contains(number) {
            unanswered.append(number)
        }
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
        guard !open.isEmpty, case .post(let number) = open.removeFirst().call else {
            world.report(Violation(promise: "P2", what: "a link got an answer that it did not ask for"))
            return
        }
        world.trace.note("link answer", number, Int(code ?? 0))
        switch code {
        case nil:
            world.check { () throws(Violation) in
                try world.ledger.accepted(number, taskID: nil, wasOnline: nil)
            }
        case 30_019: wasRefused(.post(number))
        case .some(let code):
            world.report(Violation(promise: "API", what: "post \(number) was refused over a link with \(code)"))
        }
    }

    // MARK: - Over HTTP

    private func nextAnswer() -> [UInt8]? {
        guard let start = inbox.end(of: "\r\n\r\n") else { return nil }
        let end = start + (Post.number(in: inbox, after: "Content-Length: ") ?? 0)
        guard inbox.count >= end else { return nil }
        let answer = Array(inbox[..<end])
        inbox.removeFirst(end)
        return answer
    }

    // MARK: - Answers

    private func take(_ answer: [UInt8]) {
        guard !open.isEmpty else {
            world.report(Violation(promise: "P2", what: "a backend got an answer that it did not ask for"))
            return
        }
        let call = open.removeFirst()
        world.check { () throws(Violation) in
            if isRefusal(answer, of: call) { return }
            if Post.contains(#""code":10001"#, in: answer) {
                try world.ledger.tokenRefused(call.token)
                wasRefused(call.call)
                return
            }
            if case .revoke = call.call {} else { try world.ledger.tokenTaken(hadEnded: call.hadEnded) }
            try take(answer, to: call)
        }
    }

    /// The gateway is busy, or stops.
    private func isRefusal(_ answer: [UInt8], of call: OpenCall) -> Bool {
        guard Post.contains(#""code":30019"#, in: answer) else { return false }
        wasRefused(call.call)
        return true
    }

    private func wasRefused(_ call: BackendCall) {
        let posts = call.posts(world.ledger)
        guard let number = posts.first else { return }
        world.trace.note("refused", number)
        // Of several devices some may have been taken.
        if case .postToList = call, posts.count > 1 { return loseAnswer(of: call) }
        for post in posts { world.ledger.refused(post) }
        postLater(posts)
    }

    private func take(_ answer: [UInt8], to call: OpenCall) throws(Violation) {
        func wrong(_ promise: String, _ what: String) -> Violation {
            Violation(promise: promise, what: "\(what) was answered with \(String(decoding: answer, as: UTF8.self))")
        }
        switch call.call {
        case .post(let number) where world.ledger.isWithoutToken(answer, number):
            // For good: it is not tried again.
            world.trace.note("no token", number)
            world.ledger.refused(number)
        case .post(let number) where world.ledger.isOfErased(answer, number):
            world.trace.note("erased", number)
            world.ledger.refused(number)
        case .reuse(let number) where world.ledger.isWithoutToken(answer, number): return
        case .post(let number):
            guard let start = answer.end(of: #""data":{""#) else { throw wrong("API", "post \(number)") }
            let task = answer.word(from: start)
            let wasOnline = Post.contains("successed_online", in: answer)
            world.trace.note("answer", number, wasOnline ? 1 : 0, 0, task)
            try world.ledger.accepted(number, taskID: task, wasOnline: wasOnline)
        case .postToAll(let number), .postToTags(let number):
            if let time = world.ledger.posts[number].scheduledAt, time <= world.gatewayClock.now,
                Post.contains("settings.schedule_time is invalid", in: answer)
            {
                // No attempt was taken, and now it is too late.
                for post in world.ledger.ofOneCall(number) { world.ledger.refused(post) }
                return
            }
            guard let start = answer.end(of: #""taskid":""#) else { throw wrong("API", "the push \(number) to all") }
            let task = answer.word(from: start)
            world.trace.note("answer to all", number, 0, 0, task)
            for post in world.ledger.ofOneCall(number) {
                try world.ledger.accepted(post, taskID: task, wasOnline: nil)
            }
        case .createList(let first):
            guard let start = answer.end(of: #""taskid":""#) else { throw wrong("API", "the task \(first)") }
            let task = answer.word(from: start)
            world.trace.note("task", first, 0, 0, task)
            try world.ledger.listCreated(first, task)
        case .postToList(let numbers): try takeList(answer, numbers)
        case .reuse(let number):
            guard !Post.contains("request_id cannot be repeat", in: answer) else { return }
            throw wrong("P3", "other content under the request id of post \(number)")
        case .status(let devices):
            for device in devices {
                let entry = answer.end(of: "\"\(world.cidText(device))\":{")
                let word = entry.flatMap { answer.end(of: #""status":""#, from: $0) }.map(answer.word)
                try world.ledger.status(device, word, asked: call.sentStep)
            }
        case .stop(let number):
            guard Post.contains(#""code":0"#, in: answer) else { throw wrong("API", "the end of the push \(number)") }
            world.ledger.stopped(number)
        case .revoke(let token):
            guard Post.contains(#""code":0"#, in: answer) else { throw wrong("API", "the end of a token") }
            world.ledger.apiTokens[token].hasEnded = true
        case .erase(_, _, let isGone):
            guard Post.contains(isGone ? "target user is invalid" : #""code":0"#, in: answer) else {
                throw wrong("P6", "the end of a device, which \(isGone ? "had come" : "was there"),")
            }
            world.ledger.erased = call.call.erasure
        case .timeline(let device, let post, _):
            try world.ledger.told(StoryAnswer(answer), of: device, post: post)
        }
    }

    private func takeList(_ answer: [UInt8], _ numbers: Range<Int>) throws(Violation) {
        let isStopped = Post.contains(#""code":20001"#, in: answer) && Post.contains("was stopped", in: answer)
        if isStopped || Post.contains("is older than its ttl", in: answer) {
            for number in numbers { try world.ledger.listWasOver(number) }
            return
        }
        for number in numbers {
            let cid = world.cidText(world.ledger.posts[number].device)
            guard let start = answer.end(of: "\"\(cid)\":\"") else {
                throw Violation(
                    promise: "API", what: "post \(number) was answered with \(String(decoding: answer, as: UTF8.self))")
            }
            let status = answer.word(from: start)
            world.trace.note("list answer", number, 0, 0, status)
            switch status {
            case "successed_online", "successed_offline":
                try world.ledger.accepted(
                    number, taskID: world.ledger.list(of: number)?.taskID, wasOnline: status == "successed_online")
            default:
                // The device is full.
                world.ledger.refused(number)
                postLater(number..<number + 1)
            }
        }
    }

    var hasAllAnswers: Bool { open.isEmpty && unanswered.isEmpty }
}
