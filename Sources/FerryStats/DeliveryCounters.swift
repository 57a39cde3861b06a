internal import FerryCore

/// How many messages were accepted and ended how, counted from facts and from nothing else, so that the numbers and the
/// timeline cannot disagree: restored + accepted = kept + the sum of `ended`.
package struct DeliveryCounters: Hashable, Sendable {
    /// Messages that were kept when this process began.
    package private(set) var restored = 0
    package private(set) var accepted: UInt64 = 0
    package private(set) var kept = 0
    /// Indexed by `DeliveryState.rawValue`; `kept` stays 0.
    package private(set) var ended = [UInt64](repeating: 0, count: DeliveryState.allCases.count)
    package private(set) var stubsRequested: UInt64 = 0
    package private(set) var stubsAccepted: UInt64 = 0
    package private(set) var stubsRefused: UInt64 = 0

    package init() {}

    /// So many messages were found at opening.
    package mutating func restore(_ count: Int = 1) {
        restored += count
        kept += count
    }

    package mutating func count(_ fact: Fact) {
        switch fact {
        case .accepted(let acceptance):
            guard !acceptance.isBroadcast else { return }
            accepted += 1
            kept += 1
        case .broadcastPlaced(let targets):
            accepted += targets
            kept += Int(clamping: targets)
        case .broadcastOver(let reason, let targets):
            ended[Int(reason.state.rawValue)] += targets
            kept -= Int(clamping: targets)
        case .ended(_, let reason):
            ended[Int(reason.state.rawValue)] += 1
            kept -= 1
        case .stubRequested: stubsRequested += 1
        case .stubAnswered(_, _, .accepted): stubsAccepted += 1
        case .stubAnswered(_, _, .refused): stubsRefused += 1
        case .sent, .gapSent, .acknowledged, .stubDue, .noToken, .stubWithdrawn, .tokenChanged, .attached, .detached,
            .takenOver, .wentOffline, .started, .stopped, .factsLost:
            break
        }
    }
}
