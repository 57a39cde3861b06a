internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStore
internal import FerryWire

/// Backends' connections: requests in, answers out in their order.
extension Shard {
    /// What a backend reads when there are too many connections.
    static var refusal: [UInt8] {
        var bytes: [UInt8] = []
        APIError.busy(retryAfterSeconds: 5).response.encode(into: &bytes, keepAlive: false)
        return bytes
    }

    mutating func readRequests(_ slot: Int, _ bytes: UnsafeRawBufferPointer) {
        // Behind the last request that is taken, nobody asks the decoder any more: it must not gather.
        guard backends[slot]?.closesWhenAnswered == false else { return }
        backends[slot]?.decoder.append(bytes)
        backends[slot]?.quietSince = now
        takeRequests(slot)
        countBytes(slot)
    }

    /// Anybody may send the beginning of a large request. When all of them together are too much, whoever holds more than an
    /// equal part of what there is must try again later.
    private mutating func countBytes(_ slot: Int) {
        guard let backend = backends[slot] else { return }
        let held = backend.decoder.heldBytes
        requestBytes += held - backend.countedBytes
        backends[slot]?.countedBytes = held
        let budget = BackendConnection.byteBudget
        guard requestBytes > budget, held > budget / backends.count, !backend.closesWhenAnswered,
            let place = backends[slot]?.open(keepAlive: false, isHead: false)
        else { return }
        requestBytes -= held
        backends[slot]?.countedBytes = 0
        backends[slot]?.decoder = HTTPRequestDecoder(limits: environment.httpLimits)
        // It counts heads from the beginning again.
        backends[slot]?.knownCall = nil
        backends[slot]?.closesWhenAnswered = true
        backends[slot]?.fill(place, APIError.busy(retryAfterSeconds: 5).response)
        answerInTurn(slot)
    }

    private mutating func takeRequests(_ slot: Int) {
        let token = connections.token(of: slot)
        // Numbers only: a copy of the whole state, held over `next`, would have the bytes so far copied at each call.
        while connections.index(of: token) == slot, backends[slot]?.closesWhenAnswered == false {
            let openAnswers = backends[slot]?.openAnswers ?? 0
            guard openAnswers < BackendConnection.openAnswerLimit, !isBackedUp(slot) else {
                pauseReading(slot)
                break
            }
            switch backends[slot]?.decoder.next() ?? .needsMore {
            case .needsMore:
                answerInTurn(slot)
                return
            case .expectsContinue:
                // Only said when nothing is before it: a client that waits has nothing else open.
                if openAnswers == 0 { write(slot, HTTPResponse.continueBytes) }
            case .request(let request): take(request, slot)
            case .refused(let refusal):
                guard let place = backends[slot]?.open(keepAlive: false, isHead: false) else { return }
                backends[slot]?.fill(place, HTTPResponse(refusal))
                backends[slot]?.closesWhenAnswered = true
            }
        }
        answerInTurn(slot)
    }

    /// Whether so much waits for the backend that no more requests of it are taken: written and not read by it, or behind an
    /// answer that is not there yet.
    private func isBackedUp(_ slot: Int) -> Bool {
        let waiting = connections[slot].output.count + (backends[slot]?.waitingBytes ?? 0)
        return waiting > environment.configuration.session.highWaterMark
    }

    private mutating func take(_ request: HTTPRequest, _ slot: Int) {
        let keepAlive = request.keepAlive && !isDraining
        let place = backends[slot]?.open(
            keepAlive: keepAlive, isHead: request.method == .head, isNative: request.segments.first == "v1")
        guard let place else { return }
        if !keepAlive { backends[slot]?.closesWhenAnswered = true }
        // What of the next one is here already begins now.
        backends[slot]?.requestSince = nil
        let origin = APIOrigin(shard: index, connection: connections.token(of: slot), slot: place)
        route(request, origin, backends[slot])
    }

    /// The answer for one push over a connection of this shard, which leaves with all others at the end of the turn.
    mutating func fill(_ origin: APIOrigin, _ receipt: PushReceipt) {
        guard !receipt.isIgnored else {
            return fill(origin, .success(.pushed(task: receipt.taskID, cid: receipt.cid, .ignored)))
        }
        guard let slot = connections.index(of: origin.connection), let backend = backends[slot] else { return }
        backend.fill(
            origin.slot, PushedResponse(task: receipt.taskID, cid: receipt.cid, isOnline: receipt.wasOnline))
        guard !backend.isAnswering else { return }
        backend.isAnswering = true
        answeringBackends.append(origin.connection)
    }

    /// At the end of the turn.
    mutating func answerBackends() {
        guard !answeringBackends.isEmpty else { return }
        let tokens = answeringBackends
        answeringBackends.removeAll(keepingCapacity: true)
        for token in tokens {
            guard let slot = connections.index(of: token), let backend = backends[slot] else { continue }
            backend.isAnswering = false
            answerInTurn(slot)
        }
    }

    /// An answer for one request of a connection of this shard.
    mutating func fill(_ origin: APIOrigin, _ answer: Result<APIAnswer, APIError>) {
        guard let slot = connections.index(of: origin.connection) else { return }
        switch answer {
        case .success(let answer): backends[slot]?.fill(origin.slot, answer.response)
        case .failure(let error): backends[slot]?.fill(origin.slot, error)
        }
        answerInTurn(slot)
    }

    private mutating func answerInTurn(_ slot: Int) {
        defer { countAnswers(slot) }
        while let (bytes, closes) = backends[slot]?.next() {
            write(slot, bytes)
            if closes || (backends[slot]?.closesWhenAnswered == true && backends[slot]?.hasOpenAnswers == false) {
                closeAfterOutput(slot)
                return
            }
        }
        noteProgress(slot)
    }

    private mutating func countAnswers(_ slot: Int) {
        guard let held = backends[slot]?.waitingBytes, let counted = backends[slot]?.countedAnswerBytes,
            held != counted
        else { return }
        answerBytes += held - counted
        backends[slot]?.countedAnswerBytes = held
    }

    /// Nothing more is read; the connection closes when the peer has taken what is written, or its time is over.
    mutating func closeAfterOutput(_ slot: Int) {
        connections[slot].isClosing = true
        markDirty(slot)
        arm(connection: slot, at: now + BackendConnection.requestDeadline)
    }

    /// A request that has begun has its own deadline, which further bytes do not move.
    private mutating func noteProgress(_ slot: Int) {
        guard let backend = backends[slot] else { return }
        if !backend.decoder.isMidRequest {
            backends[slot]?.requestSince = nil
        } else if backend.requestSince == nil {
            backends[slot]?.requestSince = now
        }
        if let deadline = backendDeadline(slot) { arm(connection: slot, at: deadline) }
    }

    /// When the connection is closed if nothing happens; nil while the gateway itself owes an answer.
    private func backendDeadline(_ slot: Int) -> Instant? {
        guard let backend = backends[slot] else { return nil }
        if backend.isStream { return streamDeadline(slot) }
        if let since = backend.requestSince { return since + BackendConnection.requestDeadline }
        if !connections[slot].output.isEmpty { return backend.quietSince + BackendConnection.requestDeadline }
        return backend.hasOpenAnswers ? nil : backend.quietSince + BackendConnection.idleDeadline
    }

    /// The kernel took answers: there may be room for more requests.
    mutating func backendOutputMoved(_ slot: Int) {
        backends[slot]?.quietSince = now
        if let deadline = backendDeadline(slot) { arm(connection: slot, at: deadline) }
        guard connections[slot].isReadPaused, let backend = backends[slot], !backend.closesWhenAnswered,
            backend.openAnswers < BackendConnection.openAnswerLimit / 2,
            !isBackedUp(slot)
        else { return }
        resumeReading(slot)
        // What was read before the pause.
        takeRequests(slot)
        countBytes(slot)
    }

    mutating func backendTimer(_ slot: Int) {
        if backends[slot]?.isStream == true { return streamTimer(slot) }
        guard let deadline = backendDeadline(slot) else { return }
        if now >= deadline {
            closeSilently(slot)
        } else {
            arm(connection: slot, at: deadline)
        }
    }

    /// Answers that backends of this shard still wait for.
    var openAnswers: Int { backends.all.reduce(0) { $0 + $1.openAnswers } }
}
