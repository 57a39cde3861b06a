package import FerryCore
package import FerryWire

/// What happened to a client.
package enum ClientEvent: Hashable, Sendable {
    case started
    case connected
    /// Also: could not be made.
    case connectionLost(String)
    /// `isProven` says whether the proof in a `registered` (by the app secret) or `welcome` (by the device's secret)
    /// is right; it means nothing for other frames. A push holds its original payload (`event(for:)`).
    case frameReceived(GatewayFrame, isProven: Bool)
    /// Some bytes came, whatever they hold. Told before the frames in them.
    case bytesReceived
    /// All whole frames in them have been told, and what the app could take at once is with it.
    case readingEnded
    /// What came is no frame.
    case malformedReceived(WireError)
    /// The payload of a push was compressed and could not be read, or should not have been compressed.
    case unpackingFailed(WireError)
    /// The app took everything up to this.
    case handed(Seq)
    /// A time came; perhaps one of before that is no longer waited for.
    case timerFired
    /// The record could not be saved. What was to be done after it has not been done.
    case savingFailed(String)
    case enteredForeground
    case enteredBackground
    case deviceTokenChanged(TokenChange)
    case stopRequested
}

/// What a client's driver must do, in this order. When saving fails, the rest is dropped and `savingFailed` told.
package enum ClientAction: Hashable, Sendable {
    case connect
    case send(DeviceFrame)
    /// A login or register: put the proof in, then send.
    case prove(DeviceFrame)
    /// Save before anything that follows.
    case save(ClientRecord)
    /// Give the message to the app; tell `handed` when it has it.
    case hand(PushFrame)
    case handGap(GapFrame)
    /// Close the connection, after what was sent when `flushing`.
    case close(flushing: Bool)
    case tell(ClientNotice)
}

/// What an app may want to know besides its messages.
package enum ClientNotice: Hashable, Sendable {
    case registered(CID)
    case online(CID, keptMessages: UInt64)
    case tokenSaved(PushEnvironment?)
    /// The attempt or session ended; what follows is the client's own doing.
    case offline(OfflineReason, next: NextAttempt)
    /// Nothing will happen any more.
    case stopped(StopReason)

    package enum NextAttempt: Hashable, Sendable {
        case after(Duration)
        case inForeground
        case never
    }
}

/// Why a client is not online.
package enum OfflineReason: Hashable, Sendable, CustomStringConvertible {
    case lost(String)
    case closed(CloseCode, text: String)
    case malformed(WireError)
    case violated(String)
    case unproven
    case noAnswer
    case notSaved(String)

    package var description: String {
        switch self {
        case .lost(let text): "connection lost: \(text)"
        case .closed(let code, let text): "closed by the gateway: \(code.rawValue) \(text.isEmpty ? code.text : text)"
        case .malformed(let error): "the gateway sent what is no frame (\(error))"
        case .violated(let text): "the gateway broke the protocol: \(text)"
        case .unproven: "the gateway could not prove that it knows the secret"
        case .noAnswer: "the gateway did not answer in time"
        case .notSaved(let text): "the client's state could not be saved: \(text)"
        }
    }
}

/// Why a client has stopped for good.
package enum StopReason: Hashable, Sendable, CustomStringConvertible {
    case requested
    /// The gateway's close said so.
    case closed(CloseCode, text: String)

    package var description: String {
        switch self {
        case .requested: "stopped by the app"
        case .closed(let code, let text): "\(code.rawValue) \(text.isEmpty ? code.text : text)"
        }
    }
}
