/// What one request may cost, in bytes as they come in.
package struct HTTPLimits: Hashable, Sendable {
    /// Method, target and version, without the line's end. Room for the longest call of the API: the status of 1000
    /// devices, each 32 digits and a comma that may be written `%2C`.
    package var requestLineBytes = 40_960
    /// All field lines, their ends included; once more for the trailers of a chunked body, and once more for its chunk
    /// extensions.
    package var headerBytes = 16_384
    /// Field lines; once more for trailers.
    package var headerFields = 64
    /// The body with its chunking undone. Room for a batch of 200 pushes of 3072 characters that take six bytes each as JSON
    /// escapes them.
    package var bodyBytes = 4_194_304

    package init() {}

    /// Empty lines before a request; RFC 9112 §2.2 wants one at least to be tolerated.
    static let leadingEmptyLines = 4
    /// A chunk's size line, its extensions included.
    static let chunkLineBytes = 1_024
}
