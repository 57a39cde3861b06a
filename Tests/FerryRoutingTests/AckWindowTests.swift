private import FerryCore
private import FerryRouting
private import FerryTestSupport
internal import Testing

struct AckWindowTests {
    @Test func `An ack is fresh, stale, or names what was never sent`() {
        var window = AckWindow(messageLimit: 2, byteLimit: 100, acknowledged: Seq(5))
        #expect(window.verdict(on: Seq(5)) == .stale)
        #expect(window.verdict(on: Seq(6)) == .beyondSent)
        window.didSend(Seq(8), bytes: 10)
        #expect(window.verdict(on: Seq(4)) == .stale)
        #expect(window.verdict(on: Seq(6)) == .fresh)
        #expect(window.verdict(on: Seq(8)) == .fresh)
        #expect(window.verdict(on: Seq(9)) == .beyondSent)
        #expect(window.verdict(on: Seq(.max)) == .beyondSent)
        window.didAcknowledge(Seq(8))
        #expect(window.verdict(on: Seq(8)) == .stale)
        window.didAcknowledge(Seq(3))
        #expect(window.acknowledged == Seq(8))
    }

    @Test func `Room ends with the last message and with the last byte`() {
        var window = AckWindow(messageLimit: 2, byteLimit: 100, acknowledged: .zero)
        #expect(window.hasRoom(for: .max), "a single one larger than the limit goes alone")
        window.didSend(Seq(1), bytes: 40)
        #expect(window.hasRoom(for: 60))
        #expect(!window.hasRoom(for: 61))
        window.didSend(Seq(2), bytes: 60)
        #expect(!window.hasRoom(for: 0))
        window.release(bytes: 40)
        #expect(window.hasRoom(for: 40))
        #expect(window.inFlight == 1 && window.inFlightBytes == 60)
    }

    @Test func `Bytes and counts do not overflow, whatever was sent`() {
        var window = AckWindow(messageLimit: 0, byteLimit: .min, acknowledged: .zero)
        #expect(window.messageLimit == 1 && window.byteLimit == 1)
        window.didSend(Seq(1), bytes: .max)
        window.didSend(Seq(2), bytes: .max)
        #expect(window.inFlightBytes == .max)
        #expect(!window.hasRoom(for: .max))
        for _ in 0..<4 { window.release(bytes: .max) }
        #expect(window.inFlight == 0 && window.inFlightBytes == 0)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `A window counts what was sent and not released`(_ seed: UInt64) {
        var random = SplitMix(seed: seed)
        var window = AckWindow(messageLimit: 5, byteLimit: 500, acknowledged: .zero)
        var inFlight: [UInt32] = []
        for seq in 1...300 as ClosedRange<UInt64> {
            let bytes = UInt32.random(in: 0...200, using: &random)
            let fits = inFlight.isEmpty || (inFlight.count < 5 && inFlight.reduce(0, +) + bytes <= 500)
            #expect(window.hasRoom(for: bytes) == fits)
            if fits && Bool.random(using: &random) {
                window.didSend(Seq(seq), bytes: bytes)
                inFlight.append(bytes)
                #expect(window.sent == Seq(seq))
            } else if !inFlight.isEmpty {
                window.release(bytes: inFlight.removeFirst())
            }
            #expect(Int(window.inFlight) == inFlight.count && window.inFlightBytes == inFlight.reduce(0, +))
        }
    }
}
