/// Reads requests from the bytes of one connection, whole or in pieces, one after another (RFC 9112).
///
///     decoder.append(bytes)
///     while true { switch decoder.next() { … } }   // until .needsMore or .refused
///
/// It holds at most one request's worth of bytes, plus what was appended and not yet asked for: a driver that stops
/// calling `next()` must stop appending. Between requests it holds no memory but its last short head. What it answers does not
/// depend on how the bytes were cut.
package struct HTTPRequestDecoder {
    private enum Phase {
        case requestLine
        case fields
        case fixedBody
        case chunkSize
        case chunkData
        case chunkEnd
        case trailers
        case refused(HTTPRefusal)
    }

    private let limits: HTTPLimits
    private var phase = Phase.requestLine
    /// What came in; before `cursor` it is used up, before `scanned` it holds no line feed.
    private var buffer: [UInt8] = []
    private var cursor = 0
    private var scanned = 0

    // The request in the making.
    private var request: HTTPRequest?
    private var isVersion10 = false
    /// The last request line and what it said: a backend sends the same one again and again.
    private var lastLine: [UInt8] = []
    private var lastParsed: RequestLine?
    private static let rememberedLineBytes = 256
    private var known: KnownHead?
    /// Where the head in the making begins in `buffer`, while all that has come of it is there.
    private var headStart: Int?
    /// Names the head of the last request, length of the body apart, among all of this decoder; nil when it is not remembered.
    /// Who has looked at a head of that number need not look at it again.
    package private(set) var headNumber: UInt64?
    private var emptyLines = 0
    private var lineBudget = 0
    private var fieldBudget = 0
    private var extensionBudget = 0
    /// Bytes of the body, or of the chunk, still to come.
    private var missing = 0

    package init(limits: HTTPLimits) { self.limits = limits }

    /// How many bytes the decoder holds; for a driver that keeps a budget over all connections.
    package var heldBytes: Int { buffer.count + (request?.body.count ?? 0) }

    /// Whether a request has begun and not ended; a connection that is silent meanwhile is stuck, not idle.
    package var isMidRequest: Bool { request != nil || emptyLines > 0 || cursor < buffer.count }

    /// Takes bytes in. After a refusal they are dropped.
    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        if case .refused = phase { return }
        buffer.append(contentsOf: bytes)
    }

    /// The next thing that the bytes so far say. After `.refused` it stays refused.
    package mutating func next() -> HTTPDecoded {
        do {
            return try step()
        } catch {
            phase = .refused(error)
            buffer = []
            request = nil
            (cursor, scanned) = (0, 0)
            return .refused(error)
        }
    }

    private mutating func step() throws(HTTPRefusal) -> HTTPDecoded {
        while true {
            switch phase {
            case .requestLine:
                if takeKnownHead() { continue }
                let tooLong = HTTPRefusal.requestLineTooLong
                guard let line = try takeLine(limits.requestLineBytes, tooLong) else { return needsMore() }
                try begin(line)
            case .fields:
                guard let line = try takeLine(max(0, lineBudget - 2), .headerTooLarge) else { return needsMore() }
                if !line.isEmpty {
                    let field = try readField(line)
                    request?.fields.append(name: field.name, value: field.value)
                } else if try endOfFields() {
                    return .expectsContinue
                }
            case .fixedBody:
                takeBody()
                guard missing == 0 else { return needsMore() }
                return finish()
            case .chunkSize:
                guard let line = try takeLine(HTTPLimits.chunkLineBytes, .malformed("a chunk's size line is too long"))
                else { return needsMore() }
                try beginChunk(line)
            case .chunkData:
                takeBody()
                guard missing == 0 else { return needsMore() }
                phase = .chunkEnd
            case .chunkEnd:
                guard try takeLine(0, .malformed("a chunk is longer than its size")) != nil else {
                    return needsMore()
                }
                phase = .chunkSize
            case .trailers:
                guard let line = try takeLine(max(0, lineBudget - 2), .headerTooLarge) else { return needsMore() }
                guard line.isEmpty else {
                    _ = try readField(line)
                    continue
                }
                return finish()
            case .refused(let refusal):
                return .refused(refusal)
            }
        }
    }

    // MARK: The parts of a request

    private mutating func begin(_ line: ArraySlice<UInt8>) throws(HTTPRefusal) {
        guard !line.isEmpty else {
            emptyLines += 1
            guard emptyLines <= HTTPLimits.leadingEmptyLines else { throw .malformed("there are only empty lines") }
            return
        }
        let parsed = try read(line)
        headStart = emptyLines == 0 ? line.startIndex : nil
        request = HTTPRequest(method: parsed.method, segments: parsed.segments, query: parsed.query)
        isVersion10 = parsed.isVersion10
        allowFields()
        extensionBudget = limits.headerBytes
        phase = .fields
    }

    private mutating func read(_ line: ArraySlice<UInt8>) throws(HTTPRefusal) -> RequestLine {
        if let lastParsed, lastLine.count == line.count, lastLine.elementsEqual(line) { return lastParsed }
        let parsed = try RequestLine(line)
        if line.count <= Self.rememberedLineBytes {
            lastLine = Array(line)
            lastParsed = parsed
        }
        return parsed
    }

    private mutating func allowFields() {
        lineBudget = limits.headerBytes
        fieldBudget = limits.headerFields
    }

    private mutating func readField(_ line: ArraySlice<UInt8>) throws(HTTPRefusal) -> FieldLine {
        lineBudget -= line.count + 2
        fieldBudget -= 1
        guard fieldBudget >= 0 else { throw .headerTooLarge }
        return try FieldLine(line)
    }

    /// Decides how the body is read; true when the client waits for leave to send it.
    private mutating func endOfFields() throws(HTTPRefusal) -> Bool {
        let fields = request?.fields ?? HTTPFields()
        let framing = try MessageFraming(fields, isVersion10: isVersion10, bodyLimit: limits.bodyBytes)
        request?.keepAlive = framing.keepAlive
        // Before there is room for a body, which the head that is kept would hold for as long as the connection lives.
        rememberHead(framing)
        switch framing.length {
        case .fixed(let length):
            missing = length
            phase = .fixedBody
            // Memory follows the bytes that came, not the number that was promised.
            if length > 0 { request?.body.reserveCapacity(min(length, 4096)) }
        case .chunked:
            phase = .chunkSize
        }
        return framing.expectsContinue
    }

    private mutating func rememberHead(_ framing: MessageFraming) {
        headNumber = nil
        guard let start = headStart, let request, framing.isPlain,
            let head = KnownHead(buffer[start..<cursor], request, isVersion10, number: (known?.number ?? 0) + 1)
        else { return }
        known = head
        headNumber = head.number
    }

    /// The head of before, once more.
    private mutating func takeKnownHead() -> Bool {
        guard emptyLines == 0, let match = known?.match(buffer, from: cursor, bodyLimit: limits.bodyBytes) else {
            return false
        }
        request = match.request
        isVersion10 = match.isVersion10
        headNumber = match.number
        cursor = match.end
        scanned = cursor
        missing = match.bodyBytes
        if missing > 0 { request?.body.reserveCapacity(min(missing, 4096)) }
        phase = .fixedBody
        return true
    }

    private mutating func beginChunk(_ line: ArraySlice<UInt8>) throws(HTTPRefusal) {
        var size = 0
        var digits = line
        while let digit = digits.first.flatMap(ASCII.hexValue) {
            // Checked digit by digit, so it cannot overflow.
            size = size << 4 | Int(digit)
            guard size <= limits.bodyBytes - (request?.body.count ?? 0) else { throw .bodyTooLarge }
            digits = digits.dropFirst()
        }
        guard digits.count < line.count else { throw .malformed("a chunk's size is not a number") }
        guard digits.isEmpty || digits.first == 0x3b, digits.allSatisfy(ASCII.isFieldValue) else {
            throw .malformed("a chunk's extension is malformed")
        }
        // Extensions are ignored, so their bytes buy nothing: without a bound they are work for the server only.
        extensionBudget -= digits.count
        guard extensionBudget >= 0 else { throw .malformed("the chunk extensions are too long") }
        if size == 0 {
            allowFields()
            phase = .trailers
        } else {
            missing = size
            phase = .chunkData
        }
    }

    private mutating func finish() -> HTTPDecoded {
        let finished = request
        request = nil
        emptyLines = 0
        phase = .requestLine
        releaseUsed()
        guard let finished else { return .needsMore }
        return .request(finished)
    }

    // MARK: Bytes

    /// The next line without its end, or nil while its end is not there. Only CR LF ends a line: peers that take a bare
    /// one for an end would see other requests than this server (RFC 9112 §11.2). A carriage return within the line is
    /// refused by whoever reads it: no part of any line may hold one.
    private mutating func takeLine(
        _ limit: Int, _ tooLong: HTTPRefusal
    ) throws(HTTPRefusal) -> ArraySlice<UInt8>? {
        guard let end = lineFeed() else {
            scanned = buffer.count
            // One more, because the last byte may be the carriage return of the line's end.
            guard buffer.count - cursor <= limit + 1 else { throw tooLong }
            return nil
        }
        let start = cursor
        guard end - start <= limit + 1 else { throw tooLong }
        guard end > start, buffer[end - 1] == ASCII.carriageReturn else { throw .bareLineFeed }
        let line = buffer[start..<end - 1]
        cursor = end + 1
        scanned = cursor
        return line
    }

    private func lineFeed() -> Int? {
        buffer.withUnsafeBytes { bytes in ASCII.firstLineFeed(in: bytes, from: scanned) }
    }

    /// Moves what is there of the body.
    private mutating func takeBody() {
        let count = min(missing, buffer.count - cursor)
        guard count > 0 else { return }
        request?.body.append(contentsOf: buffer[cursor..<cursor + count])
        cursor += count
        scanned = cursor
        missing -= count
    }

    private mutating func needsMore() -> HTTPDecoded {
        headStart = nil
        releaseUsed()
        if cursor > 0 {
            buffer.removeSubrange(..<cursor)
            scanned -= cursor
            cursor = 0
        }
        return .needsMore
    }

    /// Gives the memory back when all of it is used up.
    private mutating func releaseUsed() {
        guard cursor == buffer.count else { return }
        buffer = []
        (cursor, scanned) = (0, 0)
    }
}
