internal import FerryCore

/// Messages whose strategy begins with the wake-up channel (2 and 4). Each has its place in the stream, where it stands until
/// the channel has answered and nothing passes it: what follows is then either sent in order or was never to be (P2), and no
/// acknowledgement can cover what is still on its other way.
extension DeviceStateMachine {
    /// A new one: it goes out at once, whether the device is there or not.
    mutating func handOver(
        _ message: KeptMessage, now: Instant, policy: Policy, actions: inout [DeviceAction]
    ) {
        log.append(message)
        requestHandOver(at: log.count - 1, now: now, policy: policy, actions: &actions)
        enforceCap(policy, actions: &actions)
    }

    private mutating func requestHandOver(
        at index: Int, now: Instant, policy: Policy, actions: inout [DeviceAction]
    ) {
        log[index].stub = .requested
        log[index].wasOffline = true
        handOverUntil = min(handOverUntil == .distantPast ? .distantFuture : handOverUntil, now + policy.handOverTime)
        actions.append(.requestStub(.own(log[index])))
    }

    /// What was found at a start goes out now, unless its time is over; what has had no answer for too long has failed.
    mutating func handOversInTime(now: Instant, policy: Policy, actions: inout [DeviceAction]) {
        guard handOverUntil <= now else { return }
        guard handOverUntil == .distantPast else {
            // The channel does not answer: what came to it later has no better prospect.
            while let index = (0..<log.count).first(where: { log[$0].isHandingOver }) {
                endHandOver(at: index, .handOverUnanswered, now: now, policy: policy, actions: &actions)
            }
            handOverUntil = .distantFuture
            return
        }
        let late = log.removeAll { $0.isHandingOver && !$0.isLiveOnly && $0.expiresAt <= now }
        for message in late { drop(message, .ttlRanOut, actions: &actions) }
        for index in 0..<log.count where log[index].isHandingOver && log[index].stub == .due {
            requestHandOver(at: index, now: now, policy: policy, actions: &actions)
        }
        noteHandOvers()
    }

    mutating func handOverAnswered(
        _ seq: Seq, isAccepted: Bool, now: Instant, policy: Policy, actions: inout [DeviceAction]
    ) {
        // An answer that comes too late changes nothing.
        guard let index = position(of: seq), log[index].isHandingOver else { return }
        endHandOver(
            at: index, isAccepted ? .handedOver : .handOverRefused, now: now, policy: policy, actions: &actions)
    }

    /// The channel's part is over. `reason` is that of the end, where the strategy has no other way.
    mutating func endHandOver(
        at index: Int, _ reason: EndReason, now: Instant, policy: Policy, actions: inout [DeviceAction]
    ) {
        if reason == .handedOver || log[index].route == .wakeOnly {
            actions.append(.end(log.remove(at: index), reason))
        } else {
            // From now on it is as any other message that has had its wake-up.
            log[index].stub = .settled
            log[index].route = .ownFirst
            if presence.session == nil, log[index].isLiveOnly {
                actions.append(.end(log.remove(at: index), .noLiveSession))
            }
            findEarliestExpiry()
        }
        noteHandOvers()
        expire(now: now, actions: &actions)
        // While it was with the channel no cap could drop it.
        enforceCap(policy, actions: &actions)
        if case .attached = presence { actions.append(.transmit) }
    }

    /// Without a message at the channel there is nothing to wait for.
    mutating func noteHandOvers() {
        guard handOverUntil != .distantFuture, !(0..<log.count).contains(where: { log[$0].isHandingOver }) else {
            return
        }
        handOverUntil = .distantFuture
    }
}
