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
        backends[slot]?.decoder.append(bytes)
        connections[slot].quietSince = now
        takeRequests(slot)
    }

    private mutating func takeRequests(_ slot: Int) {
        let token = connections.token(of: slot)
        // No copy of the connection's state is held meanwhile: it would make every change copy the list of answers.
        while connections.index(of: token) == slot, backends[slot]?.closesWhenAnswered == false {
            guard backends[slot]?.openAnswers ?? 0 < BackendConnection.openAnswerLimit else {
                pauseReading(slot)
                break
            }
            switch backends[slot]?.decoder.next() ?? .needsMore {
            case .needsMore:
                answerInTurn(slot)
                return
            case .expectsContinue:
                // Only said when nothing is before it: a client that waits has nothing else open.
                if backends[slot]?.hasOpenAnswers == false { write(slot, HTTPResponse.continueBytes) }
            case .request(let request): take(request, slot)
            case .refused(let refusal):
                guard let place = backends[slot]?.open(keepAlive: false, isHead: false) else { return }
                backends[slot]?.fill(place, HTTPResponse(refusal))
                backends[slot]?.closesWhenAnswered = true
            }
        }
        answerInTurn(slot)
    }

    private mutating func take(_ request: HTTPRequest, _ slot: Int) {
        let keepAlive = request.keepAlive && !isDraining
        guard let place = backends[slot]?.open(keepAlive: keepAlive, isHead: request.method == .head) else { return }
        if !keepAlive { backends[slot]?.closesWhenAnswered = true }
        let origin = APIOrigin(shard: index, connection: connections.token(of: slot), slot: place)
        route(request, origin)
    }

    /// An answer for one request of a connection of this shard.
    mutating func fill(_ origin: APIOrigin, _ answer: Result<APIAnswer, APIError>) {
        guard let slot = connections.index(of: origin.connection) else { return }
        let response: HTTPResponse =
            switch answer {
            case .success(let answer): answer.response
            case .failure(let error): error.response
            }
        backends[slot]?.fill(origin.slot, response)
        answerInTurn(slot)
    }

    private mutating func answerInTurn(_ slot: Int) {
        while let (bytes, closes) = backends[slot]?.next() {
            write(slot, bytes)
            if closes || (backends[slot]?.closesWhenAnswered == true && backends[slot]?.hasOpenAnswers == false) {
                connections[slot].isClosing = true
                return
            }
        }
        if let backend = backends[slot] {
            let isBusy = backend.hasOpenAnswers || backend.decoder.isMidRequest
            let patience = isBusy ? BackendConnection.requestDeadline : BackendConnection.idleDeadline
            arm(connection: slot, at: connections[slot].quietSince + patience)
        }
    }

    /// The kernel took answers: there may be room for more requests.
    mutating func backendOutputMoved(_ slot: Int) {
        connections[slot].quietSince = now
        guard connections[slot].isReadPaused, let backend = backends[slot], !backend.closesWhenAnswered,
            backend.openAnswers < BackendConnection.openAnswerLimit / 2,
            connections[slot].output.count <= environment.configuration.session.highWaterMark
        else { return }
        resumeReading(slot)
        // What was read before the pause.
        takeRequests(slot)
    }

    mutating func backendTimer(_ slot: Int) {
        guard let backend = backends[slot] else { return }
        let isBusy = backend.hasOpenAnswers || backend.decoder.isMidRequest || !connections[slot].output.isEmpty
        let patience = isBusy ? BackendConnection.requestDeadline : BackendConnection.idleDeadline
        let deadline = connections[slot].quietSince + patience
        if now >= deadline {
            closeSilently(slot)
        } else {
            arm(connection: slot, at: deadline)
        }
    }

    /// Answers that backends of this shard still wait for.
    var openAnswers: Int { backends.values.reduce(0) { $0 + $1.openAnswers } }
}
