internal import FerryAPI
internal import FerryCore

/// What a backend's connection has beside its slot: the decoder, and the answers in the order of their requests. A request
/// that was pipelined behind a slow one may be answered earlier; its answer waits for its turn here. One
/// shard's own.
final class BackendConnection {
    /// A request that has begun must be whole within this time.
    static var requestDeadline: Duration { .seconds(30) }
    /// An idle connection is kept this long.
    static var idleDeadline: Duration { .seconds(75) }
    /// Open answers above which the connection is not read on.
    static var openAnswerLimit: Int { 64 }

    /// Bytes of unfinished requests that one shard holds before it refuses those who hold most.
    static var byteBudget: Int { 64 * 1024 * 1024 }

    /// A call that was found good but for its body, the number of the head that says so, and until when.
    struct KnownCall {
        let head: UInt64
        let route: APIRoute
        let app: App
        let expiresAt: Instant
        let revocations: UInt32
    }

    private struct Answer {
        var bytes: [UInt8]?
        var closes: Bool
        var isHead: Bool
        var keepAlive: Bool
        /// To a call under `/v1`.
        var isNative: Bool
    }

    var decoder: HTTPRequestDecoder
    var knownCall: KnownCall?
    /// In the list of those that may have an answer whose turn it is.
    var isAnswering = false
    private var answers: [Answer] = []
    private var head = 0
    /// The slot number of `answers[head]`.
    private var firstSlot: UInt64 = 0
    /// What of the decoder's bytes is in the shard's sum.
    var countedBytes = 0
    /// Bytes of answers that wait for their turn.
    private(set) var waitingBytes = 0
    /// What of them is in the shard's sum.
    var countedAnswerBytes = 0
    /// Since when a request is coming in.
    var requestSince: Instant?
    /// Since when nothing moved.
    var quietSince = Instant.distantPast
    /// No request is taken after this; the connection closes after the last answer.
    var closesWhenAnswered = false

    /// Its last request is answered with events for as long as it likes.
    var isStream = false

    init(limits: HTTPLimits) { decoder = HTTPRequestDecoder(limits: limits) }

    var openAnswers: Int { answers.count - head }
    var hasOpenAnswers: Bool { openAnswers > 0 }

    /// Takes a place in the order of answers.
    func open(keepAlive: Bool, isHead: Bool, isNative: Bool = false) -> UInt64 {
        answers.append(
            Answer(bytes: nil, closes: !keepAlive, isHead: isHead, keepAlive: keepAlive, isNative: isNative))
        return firstSlot + UInt64(openAnswers - 1)
    }

    /// The answer for a slot. One that is no longer there, or has its answer, is ignored.
    func fill(_ slot: UInt64, _ response: HTTPResponse) {
        fill(slot) { response.encode(into: &$0, keepAlive: $1.keepAlive, includesBody: !$1.isHead) }
    }

    /// A refusal, with the HTTP status of the API that was called.
    func fill(_ slot: UInt64, _ error: APIError) {
        fill(slot) { bytes, answer in
            let response = answer.isNative ? error.nativeResponse : error.response
            response.encode(into: &bytes, keepAlive: answer.keepAlive, includesBody: !answer.isHead)
        }
    }

    func fill(_ slot: UInt64, _ response: PushedResponse) {
        fill(slot) { response.encode(into: &$0, keepAlive: $1.keepAlive, includesBody: !$1.isHead) }
    }

    private func fill(_ slot: UInt64, _ encode: (inout [UInt8], Answer) -> Void) {
        guard slot >= firstSlot, slot - firstSlot < UInt64(openAnswers) else { return }
        let index = head + Int(slot - firstSlot)
        guard answers[index].bytes == nil else { return }
        var bytes: [UInt8] = []
        encode(&bytes, answers[index])
        answers[index].bytes = bytes
        waitingBytes += bytes.count
    }

    /// No open request is answered any more.
    func abandonAnswers() {
        firstSlot += UInt64(openAnswers)
        answers = []
        head = 0
        waitingBytes = 0
    }

    /// The next answer whose turn it is, and whether the connection closes after it.
    func next() -> (bytes: [UInt8], closes: Bool)? {
        guard head < answers.count, let bytes = answers[head].bytes else { return nil }
        let closes = answers[head].closes
        waitingBytes -= bytes.count
        answers[head].bytes = nil
        head += 1
        firstSlot += 1
        if head == answers.count {
            answers.removeAll(keepingCapacity: true)
            head = 0
        }
        return (bytes, closes)
    }
}
