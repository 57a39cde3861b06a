internal import FerryCore
internal import FerryStore

/// A broadcast as it stands in the streams of a shard's partitions.
struct PlacedBroadcast {
    enum State {
        /// Devices still get it.
        case live
        /// Its time is over, and the record that says so is on its way to the disk.
        case ending
        /// A device that did not get it is told so.
        case over
    }

    /// Rises with each placement of the shard, of all apps; 0 is before the first.
    let ordinal: UInt32
    /// Without its payload.
    let broadcast: AcceptedBroadcast
    /// Until nobody can be sent it any more.
    var content: BroadcastContent?
    /// By the shard's own numbers of its partitions; zero where it has its place by another entry, or not yet.
    var seqs: [Seq]
    /// Of one with a pace, by the same numbers: what the table's `newest` was when it got its place there. Empty for others,
    /// which get their places all at once, at their ordinal.
    var arrivals: [UInt32] = []
    /// It has a pace, and places are still to come.
    var isPlacing = false
    /// The first segment with a record of its places; 0 when the tables have them.
    var segment: UInt32
    var state = State.live
    /// Over because its sender stopped it, not by its time: nobody is told of a gap.
    var isStopped = false
    /// Devices for which it is accepted and whose machine was not told of it: what is known of them is their number.
    var unreached: Int
    /// Devices that have it in their log.
    var reached = 0
    /// For a live-only one: it is over at the end of this pass over the devices.
    var pass: UInt64 = 0
}

/// The broadcasts of one app in one shard.
struct BroadcastLine {
    let app: AppID
    /// By ordinal, rising.
    var placed: [PlacedBroadcast] = []
    /// Registered devices, by the shard's own numbers of its partitions.
    var registered: [Int]
    /// Where the pass over the devices stands that is under way.
    var cursor: Int?
    /// Something is new since it began: another follows.
    var wantsPass = false
    /// Passes that have begun.
    var passes: UInt64 = 0
    /// None of its broadcasts is over before this.
    var nextEnd = Instant.distantFuture
    /// One ended that devices have in their logs, where a pass is to look for it.
    var hasEnded = false
    /// The highest place of those that were found at the start, by the shard's own numbers of its partitions; empty for none.
    var restoredTop: [Seq] = []
    // Of the owner of the app.
    /// When those of the last hour were accepted, rising.
    var recent: [Instant] = []
    /// Accepted and without their places here.
    var coming = 0
    /// Of `placed`, those with `arrivals`.
    var pacedCount = 0

    /// Some device may not have been told yet what is new.
    var isSweeping: Bool { cursor != nil || wantsPass }

    /// Takes memory and a part of its devices' time still.
    var liveCount: Int { placed.count { $0.state != .over } }
}
