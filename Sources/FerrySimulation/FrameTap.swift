internal import FerryCore
internal import FerryWire

/// Cuts a stream of bytes into frames as they come.
struct FrameTap {
    private var bytes: [UInt8] = []
    private let bodyLimit: Int

    init(bodyLimit: Int) { self.bodyLimit = bodyLimit }

    /// Adds what came and calls `take` with each whole frame. false when this is no stream of frames.
    mutating func add(
        _ more: some Sequence<UInt8>, _ take: (UInt8, UnsafeRawBufferPointer) throws(Violation) -> Void
    ) throws(Violation) -> Bool {
        bytes.append(contentsOf: more)
        while true {
            var consumed = 0
            var isStream = true
            var failure: Violation?
            bytes.withUnsafeBytes { buffer in
                switch FrameSplitter.split(buffer, bodyLimit: bodyLimit) {
                case .incomplete: break
                case .frame(let type, let body, let count):
                    consumed = count
                    do throws(Violation) { try take(type, body) } catch { failure = error }
                case .tooLarge, .malformed: isStream = false
                }
            }
            if let failure { throw failure }
            if consumed == 0 { return isStream }
            bytes.removeFirst(consumed)
        }
    }
}
