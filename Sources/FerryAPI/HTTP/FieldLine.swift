/// One header or trailer line (RFC 9112 §5), read.
struct FieldLine: Hashable {
    let name: ArraySlice<UInt8>
    /// Without white space around it.
    let value: ArraySlice<UInt8>

    init(_ line: ArraySlice<UInt8>) throws(HTTPRefusal) {
        if let first = line.first, first == ASCII.space || first == ASCII.tab {
            throw .malformed("a header line is folded")
        }
        guard let colon = line.firstIndex(of: 0x3a) else { throw .malformed("a header line has no colon") }
        name = line[..<colon]
        // White space before the colon is refused with all else that is no name (RFC 9112 §5.1).
        guard !name.isEmpty, name.allSatisfy(ASCII.isToken) else { throw .malformed("a header name is malformed") }
        value = ASCII.trimmed(line[(colon + 1)...])
        guard value.allSatisfy(ASCII.isFieldValue) else {
            throw .malformed("a header value holds a control character")
        }
    }
}
