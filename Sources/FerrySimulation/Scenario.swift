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
    /// How often a wake-up is answered.
    var wakeTurns: Int
    /// Per mille of messages.
    var shortLived: Int
    var liveOnly: Int
    var ownAlerts: Int
    /// Of posts to one device, those with another strategy than 1.
    var strategies = 0
    var wakeRefusals: Int
    /// Milliseconds that the app holds a message before it has it.
    var handlingTime: Int
    var neverAcknowledging: Int

    /// Peers that stop reading, and how much of a connection's output the kernel takes then.
    var clogs = 0
    var sendBuffer: Int32?
    /// The journal gets no turn for a while.
    var stalls: Int
    /// One of the store's workers gets no turn for a while.
    var idleWorkers: Int
    /// Pushes to all; over HTTP only.
    var broadcasts = 0
    /// Per mille of these that are for a later time.
    var schedules = 0
    /// Of these, stops by their senders.
    var stops = 0
    /// Tasks with stored content, and devices for them; over HTTP only.
    var lists = 0
    /// Pushes to those that meet a condition; over HTTP only.
    var tags = 0
    /// Devices that take another's push token.
    var tokenMoves: Int
    /// Calls of backends other than pushes: status, the end of a token, a request id with other content.
    var statusCalls: Int
    var revocations: Int
    var reuses: Int
    var tableFaults: Int
    /// Per mille of starts that lose their power on the way.
    var brokenStarts: Int
    /// Milliseconds by which the clock of the gateway's machine may be off, either way.
    var clockError: Int
    /// The first device is away for long, and gets hundreds of messages.
    var hoards = false
    /// Per mille of posts that are posted twice at once.
    var repeats = 30
    /// Answers to request ids that the smallest shard has room for; nil: enough.
    var requestCapacity: Int?

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
        wakeTurns = dice.pick([5, 60, 60]) ?? 60
        shortLived = dice.pick([0, 100, 500]) ?? 0
        liveOnly = dice.pick([0, 50, 200]) ?? 0
        ownAlerts = dice.pick([0, 100, 400]) ?? 0
        wakeRefusals = dice.pick([0, 100]) ?? 0
        strategies = dice.pick([0, 0, 300]) ?? 0
        handlingTime = dice.pick([0, 0, 200, 3_000]) ?? 0
        neverAcknowledging = dice.pick([0, 0, 200]) ?? 0
        stalls = dice.pick([0, 0, 2]) ?? 0
        idleWorkers = dice.pick([0, 0, 3]) ?? 0
        tokenMoves = dice.pick([0, 0, 8]) ?? 0
        statusCalls = dice.pick([0, 0, 10]) ?? 0
        revocations = dice.pick([0, 0, 3]) ?? 0
        reuses = dice.pick([0, 0, 5]) ?? 0
        tableFaults = dice.pick([0, 0, 0, 4]) ?? 0
        brokenStarts = dice.pick([0, 0, 300]) ?? 0
        clockError = dice.pick([0, 0, 1_000, 100_000]) ?? 0
        if dice.chance(250) {
            delivery.messageCap = Cap(dice.within(2...12))
            if dice.chance(300) { delivery.capPolicy = .refuse }
            hasCap = delivery.capPolicy == .dropOldest
            if dice.chance(400) { delivery.byteCap = Cap(dice.within(100...4_000)) }
        }
        delivery.reattachGrace = .milliseconds(dice.pick([200, 1_500, 5_000]) ?? 5_000)
        delivery.stubCooldown = .milliseconds(dice.pick([300, 5_000]) ?? 5_000)
        session.windowDefault = dice.pick([1, 2, 8, 64]) ?? 64
        session.windowMaximum = 64
        session.progressDeadline = .seconds(dice.pick([20, 60]) ?? 60)
        switch dice.below(100) {
        case 0..<9: becomeClogged(&dice)
        case 9..<13: becomeHoard(&dice)
        case 13..<20: becomeForgetful(&dice)
        case 20..<34: becomeNight(&dice)
        case 34..<44: becomeCrowd(&dice)
        default: break
        }
        broadcasts = dice.pick([0, 4, 12, 40]) ?? 4
        lists = dice.pick([0, 10, 40, 80]) ?? 10
        tags = dice.pick([0, 3, 10, 30]) ?? 3
    }

    /// Peers stop reading, and what is sent to them soon fills what there is room for.
    private mutating func becomeClogged(_ dice: inout Dice) {
        clogs = dice.within(5...20)
        sendBuffer = 2_304
        devices = max(2, devices)
        payloadBytes = 2_000
        (posts, breaks, silences, hostile, neverAcknowledging, handlingTime) = (40, min(breaks, 2), 0, 0, 0, 0)
        life = min(life, 3)
        storeTurns = max(storeTurns, 200)
        hasCap = false
        delivery.messageCap = DeliveryPolicy().messageCap
        delivery.byteCap = DeliveryPolicy().byteCap
        timeStep = min(timeStep, 200)
        session.windowDefault = 64
        session.highWaterMark = dice.pick([1_000, 6_000]) ?? 6_000
        session.slowDeadline = .seconds(dice.pick([1, 4, 30]) ?? 4)
        session.ackDeadline = .seconds(dice.pick([10, 40]) ?? 10)
    }

    private mutating func becomeHoard(_ dice: inout Dice) {
        hoards = true
        hasCap = dice.chance(300)
        delivery.messageCap = hasCap ? Cap(dice.within(50...200)) : DeliveryPolicy().messageCap
        delivery.capPolicy = .dropOldest
        delivery.byteCap = DeliveryPolicy().byteCap
        session.windowDefault = dice.pick([8, 64]) ?? 64
        payloadBytes = 60
        storeTurns = max(60, storeTurns)
        neverAcknowledging = 0
    }

    /// Little room for request ids.
    private mutating func becomeForgetful(_ dice: inout Dice) {
        requestCapacity = dice.within(8...16)
        repeats = 500
        storeTurns = min(storeTurns, 60)
        posts = 40
        hasCap = false
        delivery = DeliveryPolicy()
        (shortLived, liveOnly, reuses) = (0, 0, 0)
    }

    /// Devices are away, wake-ups are slow, and the gateway is restarted often.
    private mutating func becomeNight(_ dice: inout Dice) {
        life = dice.within(15...40)
        crashes = 6
        wakeTurns = dice.pick([1, 5, 20]) ?? 5
        posts = dice.pick([10, 40]) ?? 10
        ownAlerts = dice.pick([0, 0, 200]) ?? 0
        diskFaults = dice.pick([0, 0, 2]) ?? 0
        hasCap = false
        delivery.messageCap = DeliveryPolicy().messageCap
        delivery.byteCap = DeliveryPolicy().byteCap
        isNight = true
    }

    /// Several programs with one identity.
    private mutating func becomeCrowd(_ dice: inout Dice) {
        life = 25
        isCrowd = true
    }

    private(set) var isNight = false
    private(set) var isCrowd = false
}
