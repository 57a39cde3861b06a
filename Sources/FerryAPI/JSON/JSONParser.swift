internal import CSimdJSON

/// Why a text is not JSON that the gateway reads.
package enum JSONFault: Error, Hashable, Sendable {
    case empty
    case notUTF8
    case tooDeep
    case tooLarge
    case number
    case string
    case syntax
    case noMemory

    /// What is wrong, for the sender of the text; a clause that follows "the body is not JSON: ".
    package var explanation: String {
        switch self {
        case .empty: "it is empty"
        case .notUTF8: "it is not UTF-8"
        case .tooDeep: "it nests deeper than \(JSONParser.maximumDepth) levels"
        case .tooLarge: "it is too large"
        case .number: "a number is badly spelled or beyond 64 bits"
        case .string: "a string has a bad escape, a lone surrogate, a control character or no end"
        case .syntax: "its syntax is wrong"
        case .noMemory: "there was no memory to read it"
        }
    }

    init?(_ status: csimdjson_status) {
        switch status {
        case CSIMDJSON_OK: return nil
        case CSIMDJSON_EMPTY: self = .empty
        case CSIMDJSON_NOT_UTF8: self = .notUTF8
        case CSIMDJSON_TOO_DEEP: self = .tooDeep
        case CSIMDJSON_TOO_LARGE: self = .tooLarge
        case CSIMDJSON_NUMBER: self = .number
        case CSIMDJSON_STRING: self = .string
        case CSIMDJSON_NO_MEMORY: self = .noMemory
        default: self = .syntax
        }
    }
}

/// Reads JSON by simdjson. It keeps its buffers from text to text, about 16 bytes for each byte of the largest one
/// but for those of a long one, so there is one a thread and not one a connection. It belongs to one thread.
package final class JSONParser {
    /// Arrays and objects may nest this deep.
    package static let maximumDepth = 64

    /// Buffers for longer texts are given back: one large body must not hold memory for as long as the gateway runs.
    private static let keptFor = 131_072

    /// nil when there was no memory; each parse then answers `.noMemory`.
    private let handle: OpaquePointer?

    /// `maximumBytes`: longer texts are refused as `.tooLarge`.
    package init(maximumBytes: Int) {
        handle = csimdjson_new(max(0, maximumBytes), Self.maximumDepth)
    }

    deinit { csimdjson_free(handle) }

    /// Reads `text` and lends its root to `body`. The value, and all that is reached from it, lives only until `body`
    /// returns, and `body` must not call this parser.
    package func withParsed<Answer>(
        _ text: [UInt8], _ body: (JSONValue) -> Answer
    ) -> Result<Answer, JSONFault> {
        guard let handle else { return .failure(.noMemory) }
        var root = csimdjson_value()
        let status = text.withUnsafeBufferPointer { bytes in
            csimdjson_parse(handle, bytes.baseAddress, bytes.count, &root)
        }
        if let fault = JSONFault(status) {
            if text.count > Self.keptFor { csimdjson_shrink(handle) }
            return .failure(fault)
        }
        return withExtendedLifetime(self) {
            defer { if text.count > Self.keptFor { csimdjson_shrink(handle) } }
            return .success(body(JSONValue(root)))
        }
    }
}
