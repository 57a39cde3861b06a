package import FerryCore
package import FerryWire

/// A device whose proof is right, on its way to its owner, with what the gateway's own proofs are made over.
package struct Admission: Hashable, Sendable {
    package enum Request: Hashable, Sendable {
        case login(LoginFrame)
        case register(RegisterFrame)
    }

    package let request: Request
    /// Bodies as they travelled.
    package let hello: [UInt8]
    package let challenge: [UInt8]
    package let requestBody: [UInt8]
}

/// What happened to a connection before its welcome.
package enum HandshakeEvent: Hashable, Sendable {
    /// A whole frame, with its body as it travelled.
    case frameReceived(DeviceFrame, body: [UInt8])
    /// Bytes that are no frame.
    case malformedReceived(WireError)
    /// Bytes after login or register, before welcome.
    case bytesReceivedEarly
    case proofChecked(ProofVerdict)
    /// The device's owner has looked at its record.
    case ownerAnswered(OwnerAnswer)
    case timePassed
}

package enum ProofVerdict: UInt8, Hashable, Sendable, CaseIterable {
    case right
    case wrong
    case unknownApp
}

package enum OwnerAnswer: UInt8, Hashable, Sendable, CaseIterable {
    case admitted
    case unknownDevice
    case generationRetired
    case storeUnavailable
}

/// What the driver must do, in order.
package enum HandshakeAction: Hashable, Sendable {
    case send(GatewayFrame)
    /// Compare the proof with HMAC-SHA-256 over `transcript` (key: the device's secret), then tell `.proofChecked`.
    case checkLogin(LoginFrame, transcript: [UInt8])
    /// The same with the app's secret as the key.
    case checkRegistration(RegisterFrame, transcript: [UInt8])
    /// Take the connection to its device's owner, then tell `.ownerAnswered`.
    case admit(Admission)
    case close(CloseCode)
}

/// The gateway's side of a connection from its first byte to the welcome.
///
/// It promises: no frame but `challenge` leaves before a right proof; no store is asked before a right proof; there is always
/// a deadline; after `.close` nothing more.
///
/// - awaitingHello → awaitingProof on hello; → closed on anything else
/// - awaitingProof → checking on login or register; → closed on anything else
/// - checking → admitting on a right proof; → closed on a wrong one, on early bytes, on time
/// - admitting → admitted or closed by the owner's answer
package struct HandshakeStateMachine: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        case awaitingHello
        case awaitingProof(hello: [UInt8], challenge: [UInt8])
        case checking(Admission)
        case admitting(Admission)
        case admitted
        case closed
    }

    package private(set) var state = State.awaitingHello
    /// When `.timePassed` ends the handshake.
    package let deadline: Instant
    private let nonce: Bytes32

    /// `nonce` is fresh randomness: it is what makes an old login worthless.
    package init(nonce: Bytes32, policy: SessionPolicy, now: Instant) {
        self.nonce = nonce
        deadline = now + policy.handshakeDeadline
    }

    package mutating func handle(_ event: HandshakeEvent, now: Instant, actions: inout [HandshakeAction]) {
        switch state {
        case .awaitingHello, .awaitingProof, .checking, .admitting: break
        case .admitted, .closed: return
        }
        switch event {
        case .frameReceived(let frame, let body): received(frame, body: body, &actions)
        case .malformedReceived(let error): close(error.code, &actions)
        case .bytesReceivedEarly: close(.protocolError, &actions)
        case .proofChecked(let verdict): checked(verdict, &actions)
        case .ownerAnswered(let answer): answered(answer, &actions)
        case .timePassed: if now >= deadline { close(.handshakeTooLong, &actions) }
        }
    }

    private mutating func received(_ frame: DeviceFrame, body: [UInt8], _ actions: inout [HandshakeAction]) {
        switch state {
        case .awaitingHello:
            guard case .hello(let hello) = frame else { return close(.protocolError, &actions) }
            challenge(hello, body: body, &actions)
        case .awaitingProof(let hello, let challenge):
            switch frame {
            case .login(let login):
                let transcript = Transcript.login(
                    hello: hello, challenge: challenge, signedPart: body.dropLast(WireLimits.proofBytes))
                state = .checking(
                    Admission(request: .login(login), hello: hello, challenge: challenge, requestBody: body))
                actions.append(.checkLogin(login, transcript: transcript))
            case .register(let register):
                let transcript = Transcript.register(
                    hello: hello, challenge: challenge, signedPart: body.dropLast(WireLimits.proofBytes))
                state = .checking(
                    Admission(request: .register(register), hello: hello, challenge: challenge, requestBody: body))
                actions.append(.checkRegistration(register, transcript: transcript))
            case .hello, .ack, .ping, .pong, .background, .foreground, .bye, .deviceToken, .unknownSkippable:
                close(.protocolError, &actions)
            }
        case .checking, .admitting, .admitted, .closed: close(.protocolError, &actions)
        }
    }

    private mutating func challenge(_ hello: HelloFrame, body: [UInt8], _ actions: inout [HandshakeAction]) {
        guard hello.version >= WireLimits.version else { return close(.unsupportedVersion, &actions) }
        let challenge = ChallengeFrame(nonce: nonce)
        state = .awaitingProof(hello: body, challenge: challenge.body())
        actions.append(.send(.challenge(challenge)))
    }

    private mutating func checked(_ verdict: ProofVerdict, _ actions: inout [HandshakeAction]) {
        guard case .checking(let admission) = state else { return }
        switch (verdict, admission.request) {
        case (.right, _):
            state = .admitting(admission)
            actions.append(.admit(admission))
        case (.wrong, .login): close(.wrongDeviceProof, &actions)
        case (.wrong, .register): close(.wrongAppSecret, &actions)
        case (.unknownApp, _): close(.unknownApp, &actions)
        }
    }

    private mutating func answered(_ answer: OwnerAnswer, _ actions: inout [HandshakeAction]) {
        guard case .admitting = state else { return }
        switch answer {
        case .admitted: state = .admitted
        case .unknownDevice: close(.unknownDevice, &actions)
        case .generationRetired: close(.generationRetired, &actions)
        case .storeUnavailable: close(.storeUnavailable, &actions)
        }
    }

    private mutating func close(_ code: CloseCode, _ actions: inout [HandshakeAction]) {
        state = .closed
        actions.append(.close(code))
    }
}
