internal import FerryCore
internal import FerryIO
internal import FerrySession

/// What a backend's link has beside its slot. One shard's own.
final class LinkConnection {
    var machine: LinkStateMachine
    /// Whose link it is, by the app's number; nil before its welcome.
    var app: UInt32?
    /// The machine's, here so that a push does not have all of it looked at.
    var isStreaming = false
    /// The app's; see `Identity.linkSalt`.
    var salt = Identifier128(high: 0, low: 0)
    /// The app's; see `Identity.linkKeySalt`.
    var keySalt = Identifier128(high: 0, low: 0)
    /// In the list of links that may have an answer to send.
    var isAnswering = false

    init(_ machine: LinkStateMachine) { self.machine = machine }
}

extension LinkNames {
    /// Mixes the id with the salt, so that the key whose low bits are given away below has all of both in its other bits.
    /// A permutation: two ids of one app never have the same task, and ids of a counter never the same key.
    init(id: Identifier128, salt: Identifier128) {
        message = id
        task = Self.permuted(id, salt)
    }

    /// What repeats are known by. Its low bits are the device's partition, as for every request. `salt` is another than the
    /// task's: that one can be told from the ids that devices see, and who knew this one could take another app's keys.
    func key(of cid: CID, salt: Identifier128) -> Identifier128 {
        let key = Self.permuted(task, salt)
        let partitions = UInt64(Limits.partitions)
        let partition = UInt64(Partition(of: cid).index)
        return Identifier128(high: key.high, low: key.low / partitions * partitions + partition)
    }

    private static func permuted(_ id: Identifier128, _ salt: Identifier128) -> Identifier128 {
        var (high, low) = (id.high ^ salt.high, id.low ^ salt.low)
        high ^= mixed(low)
        low ^= mixed(high)
        return Identifier128(high: high, low: low)
    }

    /// The finalizer of splitmix64.
    private static func mixed(_ word: UInt64) -> UInt64 {
        var mixed = word
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
