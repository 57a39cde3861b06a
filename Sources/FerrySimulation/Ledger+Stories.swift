internal import FerryCore

/// What an answer of the timeline says of each message.
struct StoryAnswer {
    struct Message: Hashable {
        let state: String
        /// Empty where there is none.
        let reason: String
    }

    /// By task.
    private(set) var messages: [String: Message] = [:]
    let hasMore: Bool

    init(_ answer: [UInt8]) {
        hasMore = Post.contains(#""more":true"#, in: answer)
        var place = 0
        while let task = answer.end(of: #""taskid":""#, from: place),
            let state = answer.end(of: #""state":""#, from: task),
            let verdict = answer.end(of: #""verdict":""#, from: state)
        {
            let reason = answer.end(of: #""reason":""#, from: state).flatMap { $0 < verdict ? $0 : nil }
            messages[answer.word(from: task)] = Message(
                state: answer.word(from: state), reason: reason.map(answer.word) ?? "")
            place = verdict
        }
    }
}

/// P6: of every message it can be asked what became of it, and the answer is what was seen to become of it.
extension Ledger {
    /// All has healed, and nothing is kept. `post`: the only one that was asked for, else all of the device.
    func told(_ answer: StoryAnswer, of device: Int, post: Int?) throws(Violation) {
        trace.note("told", device, post ?? -1, answer.messages.count)
        for number in posts.indices where posts[number].device == device && (post ?? number) == number {
            guard let task = posts[number].taskID, !posts[number].mayBeTwice else { continue }
            guard let message = answer.messages[task] else {
                guard posts[number].isOwed else { continue }
                // What was stopped before its time was accepted for nobody.
                if posts[number].scheduledAt != nil || posts[number].isTagged, posts[number].stoppingStep != nil {
                    continue
                }
                // Where an answer was lost to a crash, the fact of the acceptance may have been too.
                guard posts[number].attempts == 1, post != nil || !answer.hasMore else { continue }
                throw fail("P6", "nothing is told of post \(number), which was accepted")
            }
            try check(message, posts[number])
            if let before = stories[number], before != message {
                throw fail("P6", "post \(number) is told to be \(message), and before it was \(before)")
            }
            stories[number] = message
        }
    }

    private func check(_ message: StoryAnswer.Message, _ post: Post) throws(Violation) {
        let isRight =
            switch (message.state, message.reason) {
            case ("delivered", "acknowledged"): post.isSent
            case ("expired", "ttl"): !post.isLiveOnly && post.expiresAt <= clock.now
            case ("expired", "no_live_session"), ("expired", "live_session_ended"): post.isLiveOnly
            case ("handed", "handed_over"): post.handsOver && post.isWithChannel
            case ("failed", "hand_over_refused"), ("failed", "hand_over_unanswered"): post.strategy == 2
            case ("overflowed", "message_cap"), ("overflowed", "byte_cap"): scenario.hasCap
            case ("revoked", "task_stopped"): post.stoppingStep != nil
            default: false
            }
        guard isRight, !everDelivered.contains(post.number) || message.state == "delivered" else {
            throw fail("P6", "post \(post.number) is told to be \(message), which is not what became of it")
        }
    }
}
