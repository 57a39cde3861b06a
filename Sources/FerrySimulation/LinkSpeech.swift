internal import FerryCore
internal import FerryIO
internal import FerryWire

/// A backend's side of one link: what it says and how it understands what it hears.
struct LinkSpeech {
    enum Heard {
        case say([UInt8])
        case opened
        /// Of the next posts, in their order: the code of a refusal, nil where it was accepted.
        case outcomes([UInt64?])
        case closed
    }

    private let login: LinkLoginFrame
    private let helloBody: [UInt8]
    private var challenge: [UInt8] = []
    private var loginBody: [UInt8] = []
    private(set) var isOpen = false
    private var answered: UInt64 = 0

    init(app: AppID) {
        login = LinkLoginFrame(appID: app)
        helloBody = HelloFrame(nonce: .zero).body()
    }

    var hello: [UInt8] { HelloFrame(nonce: .zero).encoded() }

    /// nil: the device has no name yet.
    static func push(_ post: Post, _ world: World) -> [UInt8]? {
        guard let cid = world.ledger.devices[post.device].cid else { return nil }
        let alert = post.hasOwnAlert ? #"{"aps":{"alert":{"title":"T","body":"\#(post.alertMarker)"}}}"# : ""
        return LinkPushFrame(
            id: Identifier128(high: 7, low: UInt64(post.number)), cid: cid, flags: post.isLiveOnly ? .liveOnly : [],
            ttl: UInt64(post.ttl), alert: Array(alert.utf8), payload: Array(post.payload.utf8)
        ).encoded()
    }

    /// What the first whole frame of `inbox` means, and takes it off; nil when there is none.
    mutating func hear(_ inbox: inout [UInt8]) throws(Violation) -> Heard? {
        let read: Result<(frame: LinkGatewayFrame, body: [UInt8], consumed: Int), WireError>? = inbox.withUnsafeBytes {
            switch FrameSplitter.split($0, bodyLimit: Limits.gatewayFrameBytes) {
            case .incomplete: return nil
            case .tooLarge, .malformed: return .failure(WireError(.protocolError, "no frame"))
            case .frame(let type, let body, let consumed):
                do throws(WireError) {
                    return .success((try LinkGatewayFrame.decode(type: type, body: body), Array(body), consumed))
                } catch {
                    return .failure(error)
                }
            }
        }
        let found: (frame: LinkGatewayFrame, body: [UInt8], consumed: Int)
        switch read {
        case nil: return nil
        case .success(let whole): found = whole
        case .failure(let error): throw Self.fault(error.description)
        }
        inbox.removeFirst(found.consumed)
        switch found.frame {
        case .challenge:
            challenge = found.body
            return .say(prove())
        case .welcome(let welcome):
            let transcript = Transcript.linkWelcome(
                hello: helloBody, challenge: challenge, login: loginBody, signedPart: found.body.dropLast(32))
            guard Cryptography.hmacSHA256(key: Array(World.masterSecret.utf8), transcript) == welcome.proof.bytes
            else { throw Self.fault("a welcome without a right proof") }
            isOpen = true
            return .opened
        case .answer(let answer): return .outcomes(try outcomes(answer))
        case .close: return .closed
        case .ping, .pong, .unknownSkippable: throw Self.fault("\(found.frame)")
        }
    }

    private mutating func prove() -> [UInt8] {
        var login = login
        let transcript = Transcript.linkLogin(hello: helloBody, challenge: challenge, signedPart: login.signedPart())
        login.proof = Bytes32(Cryptography.hmacSHA256(key: Array(World.masterSecret.utf8), transcript)) ?? .zero
        loginBody = login.body()
        return login.encoded()
    }

    private mutating func outcomes(_ answer: LinkAnswerFrame) throws(Violation) -> [UInt64?] {
        guard answer.upTo > answered, answer.upTo - answered < 1_000_000 else {
            throw Self.fault("an answer up to \(answer.upTo) after one up to \(answered)")
        }
        let codes = Dictionary(answer.refusals.map { ($0.number, $0.code) }) { first, _ in first }
        defer { answered = answer.upTo }
        return (answered + 1...answer.upTo).map { codes[$0] }
    }

    private static func fault(_ what: String) -> Violation {
        Violation(promise: "wire", what: "a link's gateway sent \(what)")
    }
}
