private import FerryCore
private import FerryWire
internal import Testing

struct FrameSplitterTests {
    /// What a reader sees that is handed `pieces` one after the other and keeps what is unfinished.
    private func read(_ pieces: [[UInt8]]) -> [[UInt8]] {
        var kept: [UInt8] = []
        var frames: [[UInt8]] = []
        for piece in pieces {
            kept += piece
            while true {
                let consumed = kept.withUnsafeBytes { raw -> Int in
                    switch FrameSplitter.split(raw, bodyLimit: Limits.gatewayFrameBytes) {
                    case .frame(let type, let body, let consumed):
                        frames.append([type] + body)
                        return consumed
                    case .incomplete, .tooLarge, .malformed: return 0
                    }
                }
                if consumed == 0 { break }
                kept.removeFirst(consumed)
            }
        }
        return frames
    }

    @Test func `a stream cut in two at any place gives the same frames`() throws {
        let stream = try Samples.gatewayFrames().flatMap { $0.encoded() }
        let whole = read([stream])
        #expect(whole.count == (try Samples.gatewayFrames().count))
        for cut in 0...stream.count {
            #expect(read([Array(stream[..<cut]), Array(stream[cut...])]) == whole)
        }
    }

    @Test func `a stream that comes byte by byte gives the same frames`() throws {
        let stream = try Samples.gatewayFrames().flatMap { $0.encoded() }
        #expect(read(stream.map { [$0] }) == read([stream]))
    }

    private func verdict(_ bytes: [UInt8], bodyLimit: Int = Limits.deviceFrameBytes) -> String {
        bytes.withUnsafeBytes {
            switch FrameSplitter.split($0, bodyLimit: bodyLimit) {
            case .incomplete: "incomplete"
            case .frame(_, let body, let consumed): "frame of \(body.count) in \(consumed)"
            case .tooLarge: "too large"
            case .malformed: "malformed"
            }
        }
    }

    @Test func `a length above the limit is refused before its body has come`() {
        #expect(verdict([1, 0x80, 0x20]) == "incomplete")
        #expect(verdict([1, 0x81, 0x20]) == "too large")
        #expect(verdict([1, 0x80, 0x20] + [UInt8](repeating: 0, count: 4_096)) == "frame of 4096 in 4099")
        #expect(verdict([1, 0xff, 0xff, 0xff, 0x7f]) == "too large")
    }

    @Test func `a length has one spelling and at most four bytes`() {
        #expect(verdict([1, 0x80, 0]) == "malformed")
        #expect(verdict([1, 0x85, 0x80, 0]) == "malformed")
        #expect(verdict([1, 0x80, 0x80, 0x80]) == "incomplete")
        #expect(verdict([1, 0x80, 0x80, 0x80, 0x80]) == "malformed")
        #expect(verdict([1, 0x80, 0x80, 0x80, 0x80, 1]) == "malformed")
        #expect(verdict([1, 0, 9]) == "frame of 0 in 2")
        #expect(verdict([]) == "incomplete")
    }
}
