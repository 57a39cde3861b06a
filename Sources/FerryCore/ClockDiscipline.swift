/// Makes one time of two clocks: the boot-time clock, which no one sets but which knows no date, and the wall clock, which
/// does and can be set. The time that it tells never goes back and never jumps: small differences are slewed away; a step
/// of the wall clock above `stepThreshold` moves nothing at first, since an expiry that comes too early loses messages. It
/// raises an alarm, and is followed, slowly, once it has stood for `confirmationTime` or an operator has confirmed it.
package struct ClockDiscipline: Sendable, Hashable {
    /// Differences up to this are the wall clock's usual corrections.
    package static let stepThreshold = Duration.seconds(60)
    /// How long a step must stand until it is believed.
    package static let confirmationTime = Duration.seconds(600)
    /// The time goes at most a tenth faster or slower than it passes, so that a ttl of two hours lasts 109 minutes or more.
    private static let slewDivisor: Int64 = 10

    /// What operators are to be told. `by` is how far the wall clock is ahead of the gateway's time.
    package enum Notice: Hashable, Sendable {
        /// A step; nothing follows it yet.
        case stepped(by: Duration)
        /// The step has stood long enough, or was confirmed: the time follows it from now on.
        case confirmed(by: Duration)
        /// The wall clock is back within the threshold, or the time has caught up with it.
        case settled
    }

    private enum Trust: Hashable {
        case trusted
        case doubted(since: Instant, by: Int64)
        case followed(by: Int64)
    }

    /// Told time minus boot time, in milliseconds.
    private var offset: Int64
    private var lastBoot: Instant
    private var lastTold: Instant
    private var trust = Trust.trusted

    /// - Parameters:
    ///   - boot: the boot-time clock's time since the boot.
    ///   - floor: the time starts no earlier. When the wall clock is behind it by a step, that is an alarm like any other.
    package init(wall: Instant, boot: Instant, floor: Instant = .distantPast) {
        lastTold = max(wall, floor)
        offset = lastTold.milliseconds &- boot.milliseconds
        lastBoot = boot
    }

    /// The time at `boot`; `sampled` is called with it about once a second.
    package mutating func now(boot: Instant) -> Instant {
        lastTold = max(lastTold, Instant(milliseconds: offset &+ boot.milliseconds))
        return lastTold
    }

    /// From now on the time is at least `floor`.
    package mutating func raise(to floor: Instant, boot: Instant) {
        guard now(boot: boot) < floor else { return }
        offset = floor.milliseconds &- boot.milliseconds
        lastTold = floor
    }

    /// Compares the clocks and slews.
    package mutating func sampled(wall: Instant, boot: Instant) -> Notice? {
        let passed = max(0, boot.milliseconds &- lastBoot.milliseconds)
        lastBoot = max(lastBoot, boot)
        let ahead = wall.milliseconds &- (offset &+ boot.milliseconds)
        let threshold = Self.stepThreshold.inMilliseconds
        guard ahead.magnitude > threshold.magnitude else {
            slew(ahead, passed)
            defer { trust = .trusted }
            return trust == .trusted ? nil : .settled
        }
        switch trust {
        case .trusted:
            trust = .doubted(since: boot, by: ahead)
            return .stepped(by: .milliseconds(ahead))
        case .doubted(let since, let by):
            guard (ahead &- by).magnitude <= threshold.magnitude else {
                // Another step before the first was believed.
                trust = .doubted(since: boot, by: ahead)
                return .stepped(by: .milliseconds(ahead))
            }
            guard boot - since >= Self.confirmationTime else { return nil }
            trust = .followed(by: ahead)
            return .confirmed(by: .milliseconds(ahead))
        case .followed(let by):
            guard (ahead &- by).magnitude <= threshold.magnitude else {
                trust = .doubted(since: boot, by: ahead)
                return .stepped(by: .milliseconds(ahead))
            }
            slew(ahead, passed)
            trust = .followed(by: wall.milliseconds &- (offset &+ boot.milliseconds))
            return nil
        }
    }

    /// An operator says that the wall clock is right. nil when nothing is in doubt.
    package mutating func confirmStep() -> Notice? {
        guard case .doubted(_, let by) = trust else { return nil }
        trust = .followed(by: by)
        return .confirmed(by: .milliseconds(by))
    }

    private mutating func slew(_ ahead: Int64, _ passed: Int64) {
        let most = passed / Self.slewDivisor
        offset &+= min(max(ahead, -most), most)
    }
}
