internal import FerryClientCore
internal import FerryCore
internal import Testing

struct AckPolicyTests {
    /// The policy in words, for each small case: at once at half a window, or at 32 outside a read; else a second after the
    /// oldest.
    @Test func `an ack is due by half a window, by number at a read's end, or by time`() {
        let policy = AckPolicy()
        let start = Instant(milliseconds: 5_000)
        for windowMessages in [1, 2, 3, 7, 63, 64, 65, 1_024, .max] as [UInt64] {
            for windowBytes in [1, 2, 3, 100, 262_144, .max] as [UInt64] {
                for messages in [1, 2, 3, 31, 32, 33, 511, 512, .max] as [UInt64] {
                    for bytes in [0, 1, 49, 50, 131_071, 131_072, .max] as [UInt64] {
                        for isReading in [false, true] {
                            let waiting = AckPolicy.Waiting(messages: messages, bytes: bytes, since: start)
                            let window = AckPolicy.Window(messages: windowMessages, bytes: windowBytes)
                            let due = policy.dueTime(for: waiting, in: window, isReading: isReading)
                            let isHalf =
                                messages >= max(1, windowMessages / 2)
                                || bytes >= 1 && bytes >= windowBytes - bytes.clamped(to: windowBytes)
                            let isAtOnce = isHalf || messages >= 32 && !isReading
                            #expect(due == (isAtOnce ? .distantPast : start + .seconds(1)))
                        }
                    }
                }
            }
        }
    }

    @Test func `delay and number are the policy's`() {
        let policy = AckPolicy(delay: .milliseconds(200), messages: 3)
        let window = AckPolicy.Window(messages: 64, bytes: 1_000)
        let start = Instant(milliseconds: 5_000)
        for (messages, isReading, due) in [
            (2, false, start + .milliseconds(200)), (3, true, start + .milliseconds(200)), (3, false, .distantPast),
        ] as [(UInt64, Bool, Instant)] {
            let waiting = AckPolicy.Waiting(messages: messages, since: start)
            #expect(policy.dueTime(for: waiting, in: window, isReading: isReading) == due)
        }
    }
}

extension UInt64 {
    fileprivate func clamped(to most: UInt64) -> UInt64 { Swift.min(self, most) }
}
