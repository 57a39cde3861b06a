internal import FerryAPI
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession

/// Presence streams: a backend's connection that is answered with events for as long as it likes. Its shard asks all others to
/// tell it of the app's devices; each of them tells at the end of a turn what changed in it.
extension Shard {
    // MARK: - Devices

    /// The device came, or counts as gone.
    mutating func notePresenceNews(_ device: Int, isOnline: Bool) {
        let session = isOnline ? devices[device].machine.presence.session?.rawValue ?? 0 : 0
        presence.note(
            PresenceNews(cid: devices[device].cid, isOnline: isOnline, at: now, session: session),
            app: devices.appNumber(of: device))
    }

    /// At the end of the turn.
    mutating func sendPresence() {
        guard !presence.news.isEmpty else { return }
        for (app, news) in presence.takeNews() {
            for shard in presence.shards(watching: app) { post(.presence(.changed(app: app, news)), to: shard) }
        }
    }

    mutating func take(_ mail: PresenceMail) {
        switch mail {
        case .watch(let app, let cids, let origin):
            // What happened before this is in the count and must not be told again.
            sendPresence()
            presence.watch(app, from: origin.shard)
            let online = (cids ?? []).filter { isOnline($0, app: app) }
            post(.presence(.counted(origin, by: index, online: presence.online(app), cids: online)), to: origin.shard)
        case .unwatch(let app, let shard): presence.unwatch(app, from: shard)
        case .counted(let origin, let shard, let online, let cids): count(origin.connection, shard, online, cids)
        case .changed(let app, let news): tellStreams(of: app, news)
        }
    }

    private func isOnline(_ cid: CID, app: Int) -> Bool {
        guard let device = devices.index(of: cid), devices.appNumber(of: device) == app else { return false }
        return devices[device].machine.presence.isOnline
    }

    // MARK: - Streams

    mutating func openStream(_ query: PresenceQuery, _ app: App, _ token: String, _ origin: APIOrigin) {
        let number = Int(app.number)
        guard let until = expiry(ofToken: token, app) else { return fill(origin, .failure(.tokenInvalid)) }
        guard let slot = connections.index(of: origin.connection), let backend = backends[slot] else { return }
        guard backend.openAnswers == 1 else {
            return fill(origin, .failure(.badParameter("a presence stream must be asked for by itself")))
        }
        guard presence.streams.values.count(where: { $0.app == number }) < PresenceBoard.streamsPerApp else {
            return fill(origin, .failure(.busy(retryAfterSeconds: 5)))
        }
        // No request is taken behind it, and its place in the order of answers stays open until the end.
        backend.closesWhenAnswered = true
        backend.isStream = true
        presence.streams[origin.connection] = PresenceStream(
            app: number, cids: query.cids.map { Set($0) }, tokenDigest: Self.digest(ofToken: token),
            tokenExpiresAt: until, beatsAt: now + PresenceBoard.beat, shards: environment.shards)
        write(slot, EventStreamHead.bytes)
        for shard in 0..<environment.shards {
            let cids = query.cids.map { cids in cids.filter { environment.owner(of: $0) == shard } }
            post(.presence(.watch(app: number, cids: cids, origin)), to: shard)
        }
        arm(connection: slot, at: now + PresenceBoard.beat)
    }

    private mutating func count(_ connection: UInt64, _ shard: Int, _ online: Int, _ cids: [CID]) {
        guard var stream = presence.streams[connection] else { return }
        stream.online += online
        stream.onlineCIDs.formUnion(cids)
        stream.counted.insert(shard)
        presence.streams[connection] = stream
        if stream.isLive, let slot = connections.index(of: connection) { writeEvents(slot, stream.snapshot) }
    }

    private mutating func tellStreams(of app: Int, _ news: [PresenceNews]) {
        // All of them get the same bytes, but for those that asked for some devices only.
        var all: [UInt8] = []
        for (connection, stream) in presence.streams where stream.app == app {
            guard stream.isLive else {
                // Before the snapshot a change is a part of it. It comes from a shard that has counted already.
                countIn(news, connection)
                continue
            }
            guard let slot = connections.index(of: connection) else { continue }
            if stream.cids != nil {
                var some: [UInt8] = []
                for change in news where stream.wants(change.cid) { change.append(to: &some) }
                if !some.isEmpty { writeEvents(slot, some) }
                continue
            }
            if all.isEmpty { for change in news { change.append(to: &all) } }
            writeEvents(slot, all)
        }
    }

    /// A shard that has not counted yet tells of its changes only what other streams are to know; it will count them.
    private mutating func countIn(_ news: [PresenceNews], _ connection: UInt64) {
        guard let shard = news.first.map({ environment.owner(of: $0.cid) }),
            presence.streams[connection]?.counted.contains(shard) == true
        else { return }
        for change in news {
            presence.streams[connection]?.online += change.isOnline ? 1 : -1
            guard presence.streams[connection]?.wants(change.cid) == true else { continue }
            if change.isOnline {
                presence.streams[connection]?.onlineCIDs.insert(change.cid)
            } else {
                presence.streams[connection]?.onlineCIDs.remove(change.cid)
            }
        }
    }

    private mutating func writeEvents(_ slot: Int, _ bytes: [UInt8]) {
        let waiting = connections[slot].output.count
        guard waiting + bytes.count <= environment.configuration.session.highWaterMark || waiting == 0 else {
            return endStream(slot, "too slow")
        }
        if waiting == 0 { backends[slot]?.quietSince = now }
        write(slot, bytes)
        if !connections[slot].isClosing, let deadline = streamDeadline(slot) { arm(connection: slot, at: deadline) }
    }

    /// Says why, then closes when the peer has read it.
    private mutating func endStream(_ slot: Int, _ reason: StaticString) {
        write(slot, PresenceStream.closing(reason))
        forgetStream(connections.token(of: slot))
        backends[slot]?.abandonAnswers()
        closeAfterOutput(slot)
    }

    /// The connection is about to go, or the stream is over.
    mutating func forgetStream(_ connection: UInt64) {
        guard let stream = presence.streams.removeValue(forKey: connection) else { return }
        for shard in 0..<environment.shards {
            post(.presence(.unwatch(app: stream.app, shard: index)), to: shard)
        }
    }

    /// Before the revocation is answered: nothing is told behind it.
    mutating func endStreams(ofToken digest: [UInt8]) {
        for (connection, stream) in presence.streams where stream.tokenDigest == digest {
            if let slot = connections.index(of: connection) { endStream(slot, "token revoked") }
        }
    }

    /// The gateway stops.
    mutating func endStreams() {
        for connection in presence.streams.keys.sorted() {
            if let slot = connections.index(of: connection) { endStream(slot, "stopping") }
        }
    }

    /// Until when a stream is to be looked at; nil for a connection that is none.
    func streamDeadline(_ slot: Int) -> Instant? {
        guard let stream = presence.streams[connections.token(of: slot)], let backend = backends[slot] else {
            return nil
        }
        let beat = min(stream.beatsAt, stream.tokenExpiresAt)
        return connections[slot].output.isEmpty
            ? beat : min(beat, backend.quietSince + BackendConnection.requestDeadline)
    }

    mutating func streamTimer(_ slot: Int) {
        let connection = connections.token(of: slot)
        guard let stream = presence.streams[connection], let backend = backends[slot] else { return }
        if now >= stream.tokenExpiresAt { return endStream(slot, "token expired") }
        if revokedTokens[stream.tokenDigest] != nil { return endStream(slot, "token revoked") }
        if !connections[slot].output.isEmpty, now >= backend.quietSince + BackendConnection.requestDeadline {
            return closeSilently(slot)
        }
        if now >= stream.beatsAt {
            presence.streams[connection]?.beatsAt = now + PresenceBoard.beat
            return writeEvents(slot, PresenceStream.heartbeat)
        }
        if let deadline = streamDeadline(slot) { arm(connection: slot, at: deadline) }
    }
}
