internal import FerryCore
internal import FerryWire

/// Who holds a push token, as far as it is certain.
struct TokenFacts {
    /// The last device that was told that the token is saved for it, and the cycle then.
    var holder: (device: Int, cycle: Int)?
    /// When one was last told so.
    var savedCycle = -10
    /// Devices that named it and have no answer: any of them may have it.
    var open: Set<Int> = []
}

/// Push tokens: one belongs to one device, the last that named it.
extension Ledger {
    /// The gateway has read that the device has this token, or none.
    func claimed(_ change: TokenChange, _ device: Int, _ link: Link) {
        var token: Int?
        if case .set(let named) = change {
            token = Int(String(decoding: named.bytes, as: UTF8.self).dropFirst("token-".count))
        }
        link.facts.claims.append(token)
        for other in tokens.keys where other != token && tokens[other]?.holder?.device == device {
            tokens[other]?.holder = nil
        }
        guard let token else { return }
        devices[device].everClaimed.insert(token)
        tokens[token, default: TokenFacts()].open.insert(device)
        takeFromOthers(token, device)
    }

    func tokenSaved(isSet: Bool, _ device: Int, _ link: Link) {
        guard !link.wasClogged, !link.facts.claims.isEmpty else { return }
        let token = link.facts.claims.removeFirst()
        trace.note("saved", device, token ?? -1, link.number)
        // Another's claim may be on its way still, and will take it.
        let isContested = token.map { tokens[$0]?.open.contains { $0 != device } ?? false } ?? false
        devices[device].hasToken = isSet && !isContested
        devices[device].tokenStep = step
        guard let token else { return }
        takeFromOthers(token, device)
        tokens[token]?.open.remove(device)
        // Of two that were told at about the same time, either may be the later.
        let isDraw = tokens[token].map { $0.savedCycle + 2 >= cycle && $0.holder?.device != device } ?? false
        if isDraw { devices[device].hasToken = false }
        tokens[token]?.holder = isDraw ? nil : (device, cycle)
        tokens[token]?.savedCycle = cycle
    }

    /// From now on nobody is sure that others have it still.
    private func takeFromOthers(_ token: Int, _ device: Int) {
        for other in devices.indices where other != device && devices[other].everClaimed.contains(token) {
            devices[other].hasToken = false
        }
    }

    /// What was on its way may be on the disk or not.
    func tokensAfterRestart() {
        for token in tokens.keys {
            guard let facts = tokens[token] else { continue }
            let isSettled = facts.open.isEmpty && facts.holder.map { cycle >= $0.cycle + Self.cyclesToLose } ?? false
            tokens[token] = TokenFacts(holder: isSettled ? facts.holder : nil)
            if !isSettled, devices.count(where: { $0.everClaimed.contains(token) }) > 1 { takeFromOthers(token, -1) }
        }
    }

    /// From the claim's answer over the token's place and the loser's shard to the disk and back, and some more.
    private static let cyclesToLose = 6

    func checkHolder(_ device: Int, _ token: Int) throws(Violation) {
        guard devices[device].everClaimed.contains(token) else {
            throw fail("P5", "device \(device) is woken by token \(token), which it never had")
        }
        // A loss that the disk refuses waits for the next start.
        guard scenario.diskFaults == 0, scenario.tableFaults == 0 else { return }
        guard let facts = tokens[token], let holder = facts.holder, holder.device != device, facts.open.isEmpty,
            cycle >= holder.cycle + Self.cyclesToLose
        else { return }
        throw fail("P5", "device \(device) is woken by token \(token), which is device \(holder.device)'s")
    }
}
