private import FerryCore
internal import Testing

struct MessageTraitsTests {
    private static let samples: [MessageTraits] = {
        var samples: [MessageTraits] = []
        func add(_ change: (inout MessageTraits) -> Void) {
            var traits = MessageTraits.none
            change(&traits)
            samples.append(traits)
        }
        for kind in ContentKind.allCases where kind != .transmission { add { $0.kind = kind } }
        for route in DeliveryRoute.allCases where route != .ownFirst {
            add { $0.route = route }
            add { ($0.route, $0.otherRoute) = (route, .ownFirst) }
        }
        add { $0.window = Instant(milliseconds: 1)...Instant(milliseconds: 1_796_050_000_000) }
        add { $0.groupName = "spring-sale_2" }
        add { $0.callback = "id=7&\u{1F375}" }
        for kind in AlertKind.allCases where kind != .notify { add { $0.alertKind = kind } }
        for value in [Int32.min, -1, 0, 1, .max] {
            add { $0.badge = .add(value) }
            add { $0.badge = .set(value) }
        }
        add { $0.skipsNotifyOff = true }
        add { $0.activity = ActivityFilter(days: 30, wantsActive: true) }
        add { $0.activity = ActivityFilter(days: .max, wantsActive: false) }
        add {
            ($0.kind, $0.route, $0.groupName, $0.skipsNotifyOff) = (.revoke, .wakeOnly, "g", true)
            $0.callback = String(repeating: "c", count: MessageTraits.callbackBytes)
            $0.groupName = String(repeating: "g", count: MessageTraits.groupNameCharacters)
        }
        return samples
    }()

    @Test func `traits come back as they were written, and none takes no byte`() {
        #expect(MessageTraits.none.encoded.isEmpty)
        for traits in Self.samples {
            let bytes = traits.encoded
            #expect(!bytes.isEmpty && bytes.count <= MessageTraits.encodedBytes)
            #expect(bytes.withUnsafeBytes { MessageTraits(encoded: $0) } == traits)
            for end in bytes.indices { _ = bytes[..<end].withUnsafeBytes { MessageTraits(encoded: $0) } }
        }
    }

    @Test func `a strategy is one of four`() {
        #expect((0...5).map { DeliveryRoute(strategy: $0)?.strategy } == [nil, 1, 2, 3, 4, nil])
        #expect(DeliveryRoute(strategy: .max) == nil && DeliveryRoute(strategy: .min) == nil)
        #expect(DeliveryRoute.allCases.map(\.handsOver) == [false, true, false, true])
    }

    @Test func `a badge is never below zero and never runs over`() {
        #expect(AutoBadge.add(-5).applied(to: 3) == 0)
        #expect(AutoBadge.add(2).applied(to: 3) == 5)
        #expect(AutoBadge.add(.max).applied(to: 3) == .max)
        #expect(AutoBadge.add(.min).applied(to: 0) == 0)
        #expect(AutoBadge.set(-1).applied(to: 3) == 0)
        #expect(AutoBadge.set(9).applied(to: 3) == 9)
    }

    @Test func `a filter of activity passes over the one side or the other`() {
        let now = Instant(milliseconds: 100 * 86_400_000)
        let edge = now + .seconds(-3 * 86_400)
        let active = ActivityFilter(days: 3, wantsActive: true)
        let inactive = ActivityFilter(days: 3, wantsActive: false)
        #expect(!active.skips(seenAt: edge, now: now) && inactive.skips(seenAt: edge, now: now))
        let before = edge + .milliseconds(-1)
        #expect(active.skips(seenAt: before, now: now) && !inactive.skips(seenAt: before, now: now))
        #expect(!active.skips(seenAt: now + .seconds(5), now: now))
    }
}
