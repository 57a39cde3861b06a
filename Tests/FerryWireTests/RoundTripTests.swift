private import FerryCore
private import FerryWire
internal import Testing

struct RoundTripTests {
    @Test func `every device frame is read as it was written`() throws {
        for frame in try Samples.deviceFrames() {
            let (type, body) = try #require(Samples.open(frame.encoded(), bodyLimit: Limits.deviceFrameBytes))
            #expect(try Samples.device(type, body).get() == frame)
        }
    }

    @Test func `every gateway frame is read as it was written`() throws {
        for frame in try Samples.gatewayFrames() {
            let (type, body) = try #require(Samples.open(frame.encoded()))
            #expect(try Samples.gateway(type, body).get() == frame)
        }
    }

    @Test func `a heartbeat is two bytes`() {
        #expect(DeviceFrame.ping.encoded() == [5, 0])
        #expect(GatewayFrame.pong.encoded() == [6, 0])
    }

    @Test func `the gateway's own way to write a push gives the frame's bytes`() throws {
        let task = TaskID(Samples.identifier, monthDay: 109, kind: .list)
        for (seq, count) in [(0, 0), (1, 1), (127, 127), (1 << 20, 128), (.max, 65_536)] as [(UInt64, Int)] {
            let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
            let expected = PushFrame(
                seq: Seq(seq), flags: .offLine, messageID: MessageID(Samples.identifier), taskID: task.description,
                payload: payload
            ).encoded()
            #expect(PushFrame.encodedSize(seq: Seq(seq), payloadCount: count) == expected.count)
            var appended: [UInt8] = [1, 2, 3]
            payload.withUnsafeBytes {
                PushFrame.append(
                    to: &appended, seq: Seq(seq), flags: .offLine, messageID: MessageID(Samples.identifier),
                    taskID: task, payload: $0)
            }
            #expect(appended == [1, 2, 3] + expected)
            let written = [UInt8](unsafeUninitializedCapacity: expected.count) { buffer, initialized in
                payload.withUnsafeBytes {
                    initialized = PushFrame.write(
                        to: UnsafeMutableRawBufferPointer(buffer), seq: Seq(seq), flags: .offLine,
                        messageID: MessageID(Samples.identifier), taskID: task, payload: $0)
                }
            }
            #expect(written == expected)
        }
    }

    @Test func `appending many pushes grows the buffer seldom`() {
        let task = TaskID(Samples.identifier, monthDay: 109, kind: .app)
        var bytes: [UInt8] = []
        var growths = 0
        for seq in 0..<10_000 {
            let before = bytes.capacity
            [1, 2, 3].withUnsafeBytes {
                PushFrame.append(
                    to: &bytes, seq: Seq(UInt64(seq)), flags: [], messageID: MessageID(Samples.identifier),
                    taskID: task,
                    payload: $0)
            }
            if bytes.capacity != before { growths += 1 }
        }
        #expect(growths < 40)
    }

    @Test func `a close text that is too long is cut between characters`() throws {
        let frame = CloseFrame(code: .stopping, text: String(repeating: "é", count: 200))
        let (type, body) = try #require(Samples.open(frame.encoded()))
        guard case .close(let read) = try Samples.gateway(type, body).get() else {
            Issue.record("not a close")
            return
        }
        #expect(read.text == String(repeating: "é", count: 128))
    }

    @Test func `a gap's reasons are summed, and those of an unknown code are other`() throws {
        var writer = ByteWriter()
        for value in [9, 9, 10, 4, 1, 2, 2, 3, 77, 4, 1, 1] as [UInt64] { writer.varint(value) }
        let expected = GapFrame(seq: Seq(9), upTo: Seq(9), count: 10, expired: 3, overflowed: 3, other: 4)
        #expect(try Samples.gateway(FrameType.gap.rawValue, writer.bytes).get() == .gap(expected))
    }

    @Test func `a gap that says more reasons than it holds is malformed`() {
        var writer = ByteWriter()
        for value in [9, 9, 1, .max, 1, 1] as [UInt64] { writer.varint(value) }
        #expect(throws: WireError.self) { try Samples.gateway(FrameType.gap.rawValue, writer.bytes).get() }
    }
}
