/// What a message shows of text that the peer wrote: enough to find it again, never enough to flood a log or to forge a
/// line in it.
package enum Excerpt {
    /// At most this many bytes of the peer's text are shown.
    static let limit = 64

    /// In quotes, with control characters and broken UTF-8 as `?`, and an ellipsis where it was cut.
    package static func quoted(_ text: String) -> String {
        var shown = ""
        var size = 0
        for scalar in text.unicodeScalars {
            size += UTF8.width(scalar)
            guard size <= limit else { return "\"\(shown)\"…" }
            let isPlain = scalar.value >= 0x20 && !(0x7f...0x9f).contains(scalar.value)
            shown.unicodeScalars.append(isPlain ? scalar : "?")
        }
        return "\"\(shown)\""
    }
}
