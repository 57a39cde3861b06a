package import FerryWire

/// The pushes of one link that have no answer yet: they are taken in order, their outcomes come in any order, and answers
/// leave in order again, cumulative.
package struct AnswerWindow: Hashable, Sendable {
    /// What became of a push.
    package enum Outcome: Hashable, Sendable {
        /// On disk.
        case accepted
        case refused(code: UInt64, text: String)
        /// Nothing: neither it nor what is behind it is ever answered on this link, and the backend sends it again.
        case unanswered
    }

    /// Refusals in one answer at most, so that it stays far below the frame's limit.
    package static var refusalsPerAnswer: Int { 64 }

    package let messages: Int
    package let bytes: Int
    /// The highest number taken; 0 before the first.
    package private(set) var taken: UInt64 = 0
    /// Everything up to here is answered.
    package private(set) var answered: UInt64 = 0
    /// Of what is taken and not answered.
    package private(set) var heldBytes = 0
    /// Taken, and without an outcome.
    package private(set) var open = 0

    /// By number, modulo their count: the bytes of a push, and whether its outcome is known.
    private var sizes: [UInt32] = []
    private var isSettled: [Bool] = []
    /// In rising order of their numbers, none of them answered.
    private var refusals: [LinkRefusal] = []
    /// Nothing above this is answered any more.
    private var last = UInt64.max

    package init(messages: Int, bytes: Int) {
        self.messages = max(1, messages)
        self.bytes = max(1, bytes)
    }

    /// Gives the next push its number; nil when the window is used up.
    package mutating func take(bytes size: Int) -> UInt64? {
        let size = max(0, size)
        guard taken - answered < UInt64(messages), heldBytes + size <= bytes else { return nil }
        if sizes.isEmpty {
            sizes = Array(repeating: 0, count: messages)
            isSettled = Array(repeating: false, count: messages)
        }
        taken += 1
        let place = Int(taken % UInt64(messages))
        sizes[place] = UInt32(clamping: size)
        isSettled[place] = false
        heldBytes += size
        open += 1
        return taken
    }

    /// A number that is not open is ignored.
    package mutating func settle(_ number: UInt64, _ outcome: Outcome) {
        guard settle(number) else { return }
        switch outcome {
        case .accepted: break
        case .refused(let code, let text):
            let behind = refusals.lastIndex { $0.number < number }.map { $0 + 1 } ?? 0
            refusals.insert(LinkRefusal(number: number, code: code, text: text), at: behind)
        case .unanswered: last = min(last, number - 1)
        }
    }

    /// The push has its outcome, which is `.accepted` if nothing else is said; false for a number that is not open.
    @discardableResult
    mutating func settle(_ number: UInt64) -> Bool {
        guard number > answered, number <= taken else { return false }
        let place = Int(number % UInt64(messages))
        guard !isSettled[place] else { return false }
        isSettled[place] = true
        open -= 1
        return true
    }

    /// The next answer, if there is anything new to say.
    package mutating func nextAnswer() -> LinkAnswerFrame? {
        let before = answered
        var told = 0
        while answered < min(taken, last), isSettled[Int((answered + 1) % UInt64(messages))] {
            if told < refusals.count, refusals[told].number == answered + 1 {
                guard told < Self.refusalsPerAnswer else { break }
                told += 1
            }
            answered += 1
            heldBytes -= Int(sizes[Int(answered % UInt64(messages))])
        }
        guard answered > before else { return nil }
        guard told > 0 else { return LinkAnswerFrame(upTo: answered) }
        let answer = LinkAnswerFrame(upTo: answered, refusals: Array(refusals[..<told]))
        refusals.removeFirst(told)
        return answer
    }
}
