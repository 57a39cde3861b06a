/// A peer broke the protocol: the code to close with, and what was wrong, for the log. Its text is constant, so making one
/// allocates nothing.
package struct WireError: Error, Hashable, Sendable, CustomStringConvertible {
    package let code: CloseCode
    package let text: String

    package init(_ code: CloseCode, _ text: String) {
        self.code = code
        self.text = text
    }

    package var description: String { "\(code.rawValue): \(text)" }

    static let shortField = WireError(.protocolError, "a field runs over the end of the body")
    static let badVarint = WireError(.protocolError, "a number is cut short, too long or not in its shortest form")
    static let badExtension = WireError(.protocolError, "an extension is malformed")
    static let longString = WireError(.fieldOutOfRange, "a string is longer than its field allows")
    static let badText = WireError(.fieldOutOfRange, "a text is not UTF-8")
    static let wrongDirection = WireError(.protocolError, "this frame type never travels in this direction")
    static let mustUnderstand = WireError(.protocolError, "an unknown frame type that must be understood")
}
