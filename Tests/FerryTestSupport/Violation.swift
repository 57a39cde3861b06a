/// What an invariant says when it does not hold.
package struct Violation: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }

    /// Throws `text` unless `condition` holds.
    package static func unless(_ condition: Bool, _ text: @autoclosure () -> String) throws(Violation) {
        if !condition { throw Violation(text()) }
    }
}
