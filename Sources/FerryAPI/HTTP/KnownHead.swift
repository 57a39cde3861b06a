/// The head of a request that was read and found good, kept because a client sends the same one again and again: another is
/// known by comparing bytes. Only the number in Content-Length may differ.
struct KnownHead {
    /// What a request begins with that has the same head.
    struct Match {
        let request: HTTPRequest
        let isVersion10: Bool
        let number: UInt64
        let bodyBytes: Int
        /// Where the head ends in the bytes that were looked at.
        let end: Int
    }

    let number: UInt64
    private let bytes: [UInt8]
    /// Of Content-Length, in `bytes`; empty, at the end, where there is none.
    private let digits: Range<Int>
    /// The field's place in the request.
    private let lengthField: Int?
    private let request: HTTPRequest
    private let isVersion10: Bool

    /// Longer ones are not worth the memory.
    private static let mostBytes = 1_024
    private static let mostDigits = 7

    /// `head` is a whole one, with its empty line, of `request` whose body has not been read yet. nil when it is too long, or its
    /// length is not written as most do.
    init?(_ head: ArraySlice<UInt8>, _ request: HTTPRequest, _ isVersion10: Bool, number: UInt64) {
        guard head.count <= Self.mostBytes else { return nil }
        bytes = Array(head)
        lengthField = (0..<request.fields.count).first { request.fields.isNamed($0, "content-length") }
        if let lengthField {
            let text = request.fields.value(lengthField)
            guard text.count <= Self.mostDigits, let start = Self.end(ofLengthName: bytes, text) else { return nil }
            digits = start..<start + text.count
        } else {
            digits = bytes.count..<bytes.count
        }
        self.request = request
        self.isVersion10 = isVersion10
        self.number = number
    }

    /// Where `text` stands in `head` as the value of Content-Length, directly before the line's end.
    private static func end(ofLengthName head: [UInt8], _ text: ArraySlice<UInt8>) -> Int? {
        let line = Array("\ncontent-length:".utf8)
        var index = 0
        while index + line.count < head.count {
            if line.indices.allSatisfy({ ASCII.lowercased(head[index + $0]) == line[$0] }) {
                var start = index + line.count
                while start < head.count, head[start] == ASCII.space || head[start] == ASCII.tab { start += 1 }
                let end = start + text.count
                guard end < head.count, head[start..<end].elementsEqual(text), head[end] == ASCII.carriageReturn else {
                    return nil
                }
                return start
            }
            index += 1
        }
        return nil
    }

    /// What the bytes from `start` on begin with, when that is a head like this one, all of it, and its body is not too large.
    /// Its number has no more digits than this one's, so that it keeps the limits that this one kept.
    func match(_ buffer: [UInt8], from start: Int, bodyLimit: Int) -> Match? {
        let before = digits.lowerBound
        let after = bytes.count - digits.upperBound
        // The shortest that it can be; a look at the last byte of what must be there first spares most others.
        guard buffer.count - start >= before + min(1, digits.count) + after,
            ASCII.isSame(buffer, start, bytes, 0, count: before)
        else { return nil }
        var end = start + before
        var bodyBytes = 0
        while end < buffer.count, end - start - before < digits.count, ASCII.isDigit(buffer[end]) {
            bodyBytes = bodyBytes * 10 + Int(buffer[end] - 0x30)
            end += 1
        }
        let text = buffer[start + before..<end]
        guard text.isEmpty == digits.isEmpty, bodyBytes <= bodyLimit, buffer.count - end >= after,
            ASCII.isSame(buffer, end, bytes, digits.upperBound, count: after)
        else { return nil }
        var found = request
        if let lengthField, !text.elementsEqual(bytes[digits]) { found.fields.replaceValue(lengthField, with: text) }
        return Match(
            request: found, isVersion10: isVersion10, number: number, bodyBytes: bodyBytes, end: end + after)
    }
}
