internal import FerryCore
internal import FerryRouting
internal import FerrySession

/// What one seed makes of the world: how large it is, and how rough. All chances are per mille of a step.
struct Scenario {
    var devices: Int
    var backends: Int
    var shards: Int
    var delivery = DeliveryPolicy()
    var session = SessionPolicy()
    var segmentBytes: Int
    var payloadBytes: Int
    var hasCap = false
    /// How often the store gets a turn: low is a slow disk.
    var storeTurns: Int
    var shardTurns: Int
    var networkTurns: Int
    var timeTurns: Int
    /// Milliseconds of a usual step of time.
    var timeStep: Int
    var posts: Int
    var breaks: Int
    var silences: Int
    var life: Int
    var crashes: Int
    var diskFaults: Int
    var hostile: Int
    /// Per mille of messages.
    var shortLived: Int
    var liveOnly: Int
    var ownAlerts: Int
    var wakeRefusals: Int
    /// Milliseconds that the app holds a message before it has it.
    var handlingTime: Int
    var neverAcknowledging: Int

    init(_ dice: inout Dice) {
        devices = dice.within(1...4)
        backends = dice.within(1...3)
        shards = dice.within(1...3)
        segmentBytes = dice.chance(500) ? 65_536 : 16_384
        payloadBytes = dice.pick([40, 40, 300, 2_000]) ?? 40
        storeTurns = dice.pick([20, 60, 200, 400]) ?? 200
        shardTurns = 500
        networkTurns = dice.pick([300, 600, 900]) ?? 600
        timeTurns = dice.pick([150, 300, 500]) ?? 300
        timeStep = dice.pick([3, 30, 200, 900]) ?? 30
        posts = dice.pick([10, 40, 80]) ?? 40
        breaks = dice.pick([0, 2, 8, 20]) ?? 2
        silences = dice.pick([0, 0, 2, 5]) ?? 0
        life = dice.pick([0, 3, 10, 25]) ?? 3
        crashes = dice.pick([0, 1, 2, 6]) ?? 1
        diskFaults = dice.pick([0, 0, 2, 6]) ?? 0
        hostile = dice.pick([0, 0, 2]) ?? 0
        shortLived = dice.pick([0, 100, 500]) ?? 0
        liveOnly = dice.pick([0, 50, 200]) ?? 0
        ownAlerts = dice.pick([0, 100, 400]) ?? 0
        wakeRefusals = dice.pick([0, 100]) ?? 0
        handlingTime = dice.pick([0, 0, 200, 3_000]) ?? 0
        neverAcknowledging = dice.pick([0, 0, 200]) ?? 0
        if dice.chance(250) {
            delivery.messageCap = Cap(dice.within(2...12))
            if dice.chance(300) { delivery.capPolicy = .refuse }
            hasCap = delivery.capPolicy == .dropOldest
        }
        delivery.reattachGrace = .milliseconds(dice.pick([200, 1_500, 5_000]) ?? 5_000)
        delivery.stubCooldown = .milliseconds(dice.pick([300, 5_000]) ?? 5_000)
        session.windowDefault = dice.pick([1, 2, 8, 64]) ?? 64
        session.windowMaximum = 64
        session.progressDeadline = .seconds(dice.pick([20, 60]) ?? 60)
    }
}
