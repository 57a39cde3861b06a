/// Visits every state that a machine can reach under given events, nearest first, so that the counterexample to an
/// invariant is a shortest list of events.
package struct ReachabilitySearch<State: Hashable, Event> {
    /// What a search saw. `violation` is nil when every edge held.
    package struct Report: CustomStringConvertible {
        package var states = 0
        package var transitions = 0
        /// Whether no state was left unvisited for the bound.
        package var isComplete = true
        package var violation: Violation?
        /// The events that lead from the first state to the violation.
        package var path: [Event] = []

        package var description: String {
            guard let violation else {
                return "\(states) states, \(transitions) transitions, \(isComplete ? "all" : "bounded")"
            }
            let steps = path.enumerated().map { "  \($0.offset + 1). \($0.element)" }.joined(separator: "\n")
            return "\(violation)\n after\n\(steps)"
        }
    }

    private let events: (State) -> [Event]
    private let step: (inout State, Event) throws(Violation) -> Void

    /// - Parameters:
    ///   - events: what may happen in a state; none ends the way there.
    ///   - step: performs one event and checks the invariants of the edge and of the state that it leads to.
    package init(
        events: @escaping (State) -> [Event], step: @escaping (inout State, Event) throws(Violation) -> Void
    ) {
        self.events = events
        self.step = step
    }

    /// Searches from `initial` until all is seen, `limit` states are known, or an edge breaks an invariant.
    package func run(from initial: State, limit: Int) -> Report {
        var report = Report()
        var states = [initial]
        var origins: [(parent: Int, event: Event)?] = [nil]
        var known: Set<State> = [initial]
        var cursor = 0
        while cursor < states.count {
            for event in events(states[cursor]) {
                report.transitions += 1
                var next = states[cursor]
                do {
                    try step(&next, event)
                } catch {
                    report.violation = error
                    report.path = path(to: cursor, origins) + [event]
                    report.states = states.count
                    return report
                }
                guard !known.contains(next) else { continue }
                guard states.count < limit else {
                    report.isComplete = false
                    continue
                }
                known.insert(next)
                states.append(next)
                origins.append((cursor, event))
            }
            cursor += 1
        }
        report.states = states.count
        return report
    }

    private func path(to index: Int, _ origins: [(parent: Int, event: Event)?]) -> [Event] {
        var path: [Event] = []
        var cursor = index
        while let origin = origins[cursor] {
            path.append(origin.event)
            cursor = origin.parent
        }
        return path.reversed()
    }
}
