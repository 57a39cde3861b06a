internal import FerryCore
private import FerryWire
internal import Testing

struct SharedPushTests {
    @Test(arguments: [0, 1, 127, 128, 16_384, Limits.payloadBytes])
    func `A frame whose tail was written once is the frame that is written whole`(count: Int) throws {
        let task = TaskID(Identifier128(high: 5, low: 6), monthDay: 1_231, kind: .app)
        let message = MessageID(Identifier128(high: 7, low: 8))
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        let shared = SharedPush(messageID: message, taskID: task, payload: payload)
        for (seq, flags) in [(1, []), (127, .offLine), (128, []), (UInt64.max, .offLine)] as [(UInt64, PushFrame.Flags)]
        {
            let whole = PushFrame(
                seq: Seq(seq), flags: flags, messageID: message, taskID: task.description, payload: payload)
            var bytes = [UInt8](repeating: 0, count: shared.encodedSize(seq: Seq(seq)))
            let written = bytes.withUnsafeMutableBytes { shared.write(to: $0, seq: Seq(seq), flags: flags) }
            #expect(written == bytes.count)
            #expect(bytes == GatewayFrame.push(whole).encoded())
        }
    }
}
