internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStore
internal import FerryWire

/// Sockets: taking them, reading, one send a tick, closing.
extension Shard {
    /// Connections taken in one tick, so that a storm of them does not hold up those that are there.
    private static var acceptsPerTick: Int { 128 }

    mutating func accept(_ listener: Int32, kind: Connection.Kind) {
        for _ in 0..<Self.acceptsPerTick {
            switch Socket.accept(listener) {
            case .success(let accepted):
                guard !environment.memoryBudget.isFarExceeded, environment.census.enter() else {
                    refuse(Transport(descriptor: accepted.descriptor), kind)
                    continue
                }
                let transport = Transport(descriptor: accepted.descriptor)
                switch kind {
                case .http, .link: spread(transport, accepted.peer, kind)
                case .handshake, .device, .free: admit(transport, accepted.peer, kind)
                }
            case .failure(let error):
                switch error.code {
                case ErrorNumber.again: return
                case ErrorNumber.tooManyFiles, ErrorNumber.tooManyFilesInSystem:
                    refuseWithSpare(listener, kind)
                    return
                default: continue
                }
            }
        }
    }

    /// Backends are few and each brings much: the kernel gives a burst of connections to whichever shard wakes first, so
    /// they are dealt out in turn.
    private mutating func spread(_ transport: Transport, _ peer: SocketAddress, _ kind: Connection.Kind) {
        let shard = nextBackendShard
        nextBackendShard = (shard + 1) % environment.shards
        post(.backend(transport, peer, kind), to: shard)
    }

    /// Takes in a connection that the census has counted.
    mutating func admit(_ transport: Transport, _ peer: SocketAddress, _ kind: Connection.Kind) {
        var connection = Connection()
        connection.kind = kind
        connection.transport = transport
        connection.peer = peer
        guard let slot = add(connection) else {
            environment.census.leave()
            refuse(transport, kind)
            return
        }
        begin(slot, kind)
    }

    private mutating func begin(_ slot: Int, _ kind: Connection.Kind) {
        switch kind {
        case .handshake:
            let nonce = Bytes32(random.bytes(32)) ?? .zero
            let machine = HandshakeStateMachine(nonce: nonce, policy: environment.configuration.session, now: now)
            handshakes[slot] = machine
            arm(connection: slot, at: machine.deadline)
        case .http:
            backends[slot] = BackendConnection(limits: environment.httpLimits)
            backends[slot]?.quietSince = now
            arm(connection: slot, at: now + BackendConnection.requestDeadline)
        case .link: beginLink(slot)
        case .device, .free: break
        }
    }

    /// Takes a slot and has the poller watch it; nil, and nothing taken, when that fails.
    mutating func add(_ connection: Connection) -> Int? {
        guard let slot = connections.insert(connection) else { return nil }
        do throws(SystemError) {
            try beginWatching(slot)
            return slot
        } catch {
            connections.remove(slot)
            return nil
        }
    }

    /// Too many connections: says so and closes.
    func refuse(_ transport: Transport, _ kind: Connection.Kind) {
        let farewell: [UInt8] =
            switch kind {
            case .http:
                Self.refusal
            case .handshake, .device, .link, .free:
                GatewayFrame.close(CloseFrame(code: .tooManyConnections, retryAfter: 5_000)).encoded()
            }
        _ = farewell.withUnsafeBytes { send(transport, $0) }
        close(transport)
    }

    private mutating func refuseWithSpare(_ listener: Int32, _ kind: Connection.Kind) {
        SpareDescriptor.close(spareDescriptor)
        if case .success(let accepted) = Socket.accept(listener) {
            refuse(Transport(descriptor: accepted.descriptor), kind)
        }
        spareDescriptor = SpareDescriptor.open()
    }

    // MARK: - Reading

    /// `isGone`: the peer takes and sends nothing more. The poller says so again and again, whatever was asked of it.
    mutating func read(_ slot: Int, isGone: Bool) {
        if connections[slot].isLingering { return discard(slot) }
        guard !connections[slot].isClosing, !connections[slot].isReadPaused else {
            if isGone { lose(slot) }
            return
        }
        switch receive(slot) {
        case .moved(let count):
            let bytes = UnsafeRawBufferPointer(rebasing: readBuffer[..<count])
            switch connections[slot].kind {
            case .handshake, .device, .link: readFrames(slot, bytes)
            case .http: readRequests(slot, bytes)
            case .free: break
            }
        case .wouldBlock: break
        case .ended: peerEnded(slot)
        case .failed: lose(slot)
        }
    }

    /// The peer sends no more. A backend may still want its answers; a device's connection is over.
    private mutating func peerEnded(_ slot: Int) {
        guard connections[slot].kind == .http else { return lose(slot) }
        if backends[slot]?.isStream == true {
            // Nobody reads it any more.
            lose(slot)
        } else if backends[slot]?.hasOpenAnswers == true {
            backends[slot]?.closesWhenAnswered = true
            pauseReading(slot)
        } else if !connections[slot].output.isEmpty {
            closeAfterOutput(slot)
        } else {
            lose(slot)
        }
    }

    // MARK: - Writing

    /// One send for each connection that has something to say.
    mutating func flushDirty() {
        guard !dirty.isEmpty else { return }
        var batch = dirty
        dirty = []
        for slot in batch { flush(Int(slot)) }
        batch.removeAll(keepingCapacity: true)
        // What a flush itself made dirty goes with the next tick.
        batch.append(contentsOf: dirty)
        dirty = batch
    }

    private mutating func flush(_ slot: Int) {
        guard connections[slot].kind != .free, connections[slot].isDirty else { return }
        connections[slot].isDirty = false
        if !connections[slot].output.isEmpty {
            let wanted = connections[slot].transport.wantsWrite
            switch send(slot) {
            case .moved(let count): connections[slot].output.consume(count, into: &reuse.blocks)
            case .wouldBlock: break
            case .ended, .failed:
                lose(slot)
                return
            }
            if connections[slot].transport.wantsWrite != wanted { watch(slot) }
        }
        countBuffers(slot)
        if connections[slot].isClosing {
            // A backend gets its whole answer; a device that has not read so far gets no more time.
            let isBackend = connections[slot].kind == .http || connections[slot].kind == .link
            let mustWait = isBackend && !connections[slot].output.isEmpty
            // What it still sends is not read, so the poller must not tell of it either.
            if mustWait { pauseReading(slot) } else { linger(slot) }
            return
        }
        outputMoved(slot)
    }

    private mutating func outputMoved(_ slot: Int) {
        switch connections[slot].kind {
        case .device: sessionOutputMoved(slot)
        case .http: backendOutputMoved(slot)
        case .link: linkOutputMoved(slot)
        case .handshake, .free: break
        }
    }

    mutating func pauseReading(_ slot: Int) {
        guard !connections[slot].isReadPaused else { return }
        connections[slot].isReadPaused = true
        watch(slot)
    }

    mutating func resumeReading(_ slot: Int) {
        guard connections[slot].isReadPaused else { return }
        connections[slot].isReadPaused = false
        watch(slot)
    }

    // MARK: - Ending

    /// Says why, then closes at the end of the tick.
    mutating func close(_ slot: Int, _ code: CloseCode, retryAfter: UInt64 = 0) {
        guard !connections[slot].isClosing else { return }
        write(slot, .close(CloseFrame(code: code, retryAfter: retryAfter)))
        connections[slot].isClosing = true
        markDirty(slot)
        arm(connection: slot, at: now + .seconds(10))
    }

    /// Closes at the end of the tick without a word. Output that the peer does not take holds it up for a while, not for ever.
    mutating func closeSilently(_ slot: Int) {
        connections[slot].isClosing = true
        markDirty(slot)
        arm(connection: slot, at: now + Self.lingerTime)
    }

    private static var lingerTime: Duration { .seconds(2) }

    private mutating func linger(_ slot: Int) {
        guard !connections[slot].isLingering else { return }
        guard endSending(connections[slot].transport) else { return drop(slot) }
        connections[slot].isLingering = true
        connections[slot].isReadPaused = false
        connections[slot].input.release()
        connections[slot].output.release()
        countBuffers(slot)
        connections[slot].transport.endWriting()
        watch(slot)
        // Timers only ever move closer; this one replaces whatever was set.
        wheel.schedule(slot, at: now + Self.lingerTime)
    }

    private mutating func discard(_ slot: Int) {
        switch receive(slot) {
        case .moved, .wouldBlock: break
        case .ended, .failed: drop(slot)
        }
    }

    /// The socket is of no use any more.
    private mutating func lose(_ slot: Int) {
        if connections[slot].kind == .device { tell(session: slot, .connectionLost) }
        drop(slot)
    }

    /// Frees the slot and closes the descriptor.
    private mutating func drop(_ slot: Int) {
        guard connections[slot].kind != .free else { return }
        let transport = connections[slot].transport
        forgetConnection(slot)
        release(slot)
        close(transport)
        environment.census.leave()
    }

    /// Frees the slot; the descriptor lives on.
    mutating func release(_ slot: Int) {
        endWatching(connections[slot].transport)
        wheel.cancel(slot)
        handshakes[slot] = nil
        links[slot] = nil
        if let backend = backends.removeValue(forKey: slot) {
            if backend.isStream { forgetStream(connections.token(of: slot)) }
            requestBytes -= backend.countedBytes
            answerBytes -= backend.countedAnswerBytes
        }
        bufferBytes -= Int(connections[slot].countedBytes)
        connections.remove(slot)
    }

    mutating func connectionTimer(_ slot: Int) {
        guard slot < connections.highWater, connections[slot].kind != .free else { return }
        if connections[slot].isClosing { return drop(slot) }
        switch connections[slot].kind {
        case .handshake:
            tell(handshake: slot, .timePassed)
            if let deadline = handshakes[slot]?.deadline, !connections[slot].isClosing {
                arm(connection: slot, at: max(deadline, now + .milliseconds(1)))
            }
        case .device: tell(session: slot, .timePassed)
        case .http: backendTimer(slot)
        case .link: tell(link: slot, .timePassed)
        case .free: break
        }
    }

    /// The gateway stops: devices are told to come back, each after its own while; links once they have their answers.
    mutating func closeForStop() {
        endStreams()
        for slot in 0..<connections.highWater {
            switch connections[slot].kind {
            case .device, .handshake:
                close(slot, .stopping, retryAfter: UInt64.random(in: 500...3_000, using: &random))
            case .link: tell(link: slot, .stopRequested)
            case .http, .free: break
            }
        }
    }

    mutating func closeAll() {
        for slot in 0..<connections.highWater where connections[slot].kind != .free { drop(slot) }
        SpareDescriptor.close(spareDescriptor)
        spareDescriptor = -1
    }
}
