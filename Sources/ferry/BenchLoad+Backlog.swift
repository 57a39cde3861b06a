/// Devices with a long backlog beside others that are there: does it delay those?
extension BenchLoad {
    /// How many collect their backlog at the same time.
    private static let crowdAtOnce = 2

    func plan(of index: Int) -> Plan {
        crowd.contains(index) && nextOfCrowd > 0 ? .collect(settings.messages ?? 1) : plan
    }

    /// Lets the next device of the crowd come when one has gone; nothing while the crowd is to stay away.
    mutating func bringCrowd() throws(BenchFailure) {
        guard nextOfCrowd > 0 else { return }
        let here = crowd.reduce(0) { $0 + (devices[$1].descriptor >= 0 ? 1 : 0) }
        // `nextOfCrowd` counts from 1, so that 0 can stand for "none may come".
        guard here < Self.crowdAtOnce, nextOfCrowd <= crowd.count else { return }
        try connect(crowd.lowerBound + nextOfCrowd - 1)
        nextOfCrowd += 1
    }
}
