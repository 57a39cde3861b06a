internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// Frames of devices after their welcome.
extension Shard {
    mutating func receiveSessionFrame(_ slot: Int, type: UInt8, body: UnsafeRawBufferPointer) {
        let frame: DeviceFrame
        do throws(WireError) {
            frame = try DeviceFrame.decode(type: type, body: body)
        } catch {
            endSession(slot, with: error.code)
            return
        }
        switch frame {
        case .ack(let ack): acknowledge(slot, ack.seq)
        case .ping: tell(session: slot, .pingReceived)
        case .pong: tell(session: slot, .pongReceived)
        case .background: tell(session: slot, .backgroundReceived)
        case .foreground(let foreground): tell(session: slot, .foregroundReceived(lastSeq: foreground.lastSeq))
        case .bye: tell(session: slot, .byeReceived)
        case .deviceToken(let frame):
            let device = Int(connections[slot].device)
            if device >= 0, mayWrite(slot) { saveToken(frame.change, device: device, connection: slot) }
        case .hello, .login, .register: tell(session: slot, .unexpectedFrameReceived)
        case .unknownSkippable: break
        }
    }

    mutating func tell(session slot: Int, _ event: SessionEvent) {
        var actions: [SessionAction] = []
        connections[slot].session.handle(
            event, now: now, policy: environment.configuration.session, actions: &actions)
        for action in actions { perform(action, slot, closing: actions.closeCode) }
        armSession(slot)
    }

    private mutating func armSession(_ slot: Int) {
        guard connections[slot].kind == .device, !connections[slot].isClosing else { return }
        arm(connection: slot, at: connections[slot].session.deadline(environment.configuration.session))
    }

    // Of these there are several for each message; no action follows from them, and seldom a timer.

    mutating func noteHeard(_ slot: Int) {
        if connections[slot].session.heard(now: now) { armSession(slot) }
    }

    mutating func noteSent(_ slot: Int) {
        if connections[slot].session.entrySent(now: now) { armSession(slot) }
    }

    private mutating func noteProgress(_ slot: Int, isEmpty: Bool) {
        if connections[slot].session.progressed(isEmpty: isEmpty, now: now) { armSession(slot) }
    }

    /// `closing` is what the connection is closed with after the session's end, if it is.
    private mutating func perform(_ action: SessionAction, _ slot: Int, closing: CloseCode?) {
        switch action {
        case .sendPing: write(slot, .ping)
        case .sendPong:
            // Whoever asks without reading the answers is not owed more of them.
            if connections[slot].output.count <= environment.configuration.session.highWaterMark { write(slot, .pong) }
        case .startSession(let lastSeq): resume(slot, lastSeq: lastSeq)
        case .endSession(let ending): detach(slot, ending, closing: closing)
        case .close(let reason): close(slot, reason.code)
        case .disconnect: closeSilently(slot)
        }
    }

    /// The peer broke the protocol: its session ends with this code.
    mutating func endSession(_ slot: Int, with code: CloseCode) {
        EventLog.write(
            .info, "session closed",
            ["peer": connections[slot].peer.description, "code": code.description])
        if connections[slot].session.state == .foreground { detach(slot, .lost, closing: code) }
        connections[slot].session = .closed
        close(slot, code)
    }

    private static var writesPerMinute: UInt8 { 60 }

    /// Whether the device may cause one more record; one that causes too many is closed.
    private mutating func mayWrite(_ slot: Int) -> Bool {
        if connections[slot].mayWrite(now: now, limit: Self.writesPerMinute) { return true }
        endSession(slot, with: .overloaded)
        return false
    }

    /// The slot is about to be freed: the device it belonged to, if any, has no connection now.
    mutating func forgetConnection(_ slot: Int) {
        let device = Int(connections[slot].device)
        guard device >= 0, devices.isInUse(device), devices[device].connection == slot else { return }
        devices[device].connection = nil
        armResting(device)
    }

    // MARK: - The session and its device

    /// The connection is the device's from now on; an older one is not.
    mutating func attach(_ slot: Int, device: Int, session: SessionID, lastSeq: Seq?, window: Int32) {
        let continues = devices[device].connection == slot
        devices[device].connection = slot
        devices[device].isResting = false
        connections[slot].device = Int32(device)
        counters.sessions += 1
        note(.attached(attachment(slot, session, lastSeq: lastSeq, continues: continues)), device)
        arm(connection: slot, at: connections[slot].session.deadline(environment.configuration.session))
        if devices[device].machine.isGraceOver(now: now) { devices[device].absences &+= 1 }
        tell(
            device: device,
            .attached(
                session, lastSeq: lastSeq, window: window, windowBytes: environment.configuration.session.windowBytes,
                continues: continues))
    }

    /// The device's older connection, in the foreground or the background, goes before the newer is told anything.
    mutating func takeOverConnection(of device: Int, by slot: Int) {
        guard let older = devices[device].connection, older != slot else { return }
        if connections[older].session.state == .foreground {
            counters.sessions -= 1
            if let session = devices[device].machine.presence.session { note(.takenOver(session), device) }
        }
        tell(session: older, .takenOver)
        connections[older].device = -1
        devices[device].connection = nil
    }

    /// `foreground`: a new session on the connection that is there.
    private mutating func resume(_ slot: Int, lastSeq: Seq) {
        let device = Int(connections[slot].device)
        guard device >= 0 else {
            close(slot, .logInAgain)
            return
        }
        guard mayWrite(slot) else {
            // The session that ended just now had never begun.
            counters.sessions += 1
            return
        }
        catchUp(device)
        let honoured = honoured(lastSeq, epoch: environment.epoch, cid: devices[device].cid)
        let kept = keptSummary(device, after: honoured)
        let session = makeSessionID()
        // As it was granted: the machine has it from the session before.
        let window = devices[device].machine.window.messageLimit
        write(
            slot,
            .resumed(
                ResumedFrame(
                    sessionID: session, isResumed: honoured != nil, keptMessages: UInt64(kept.count),
                    keptBytes: UInt64(kept.bytes))))
        noteSeen(device)
        attach(slot, device: device, session: session, lastSeq: honoured, window: window)
    }

    private mutating func detach(_ slot: Int, _ ending: SessionEnding, closing: CloseCode?) {
        counters.sessions -= 1
        let device = Int(connections[slot].device)
        guard device >= 0 else { return }
        let end: SessionEnd =
            switch ending {
            case .lost: .lost
            case .background: .background
            case .bye: .bye
            }
        if end != .background {
            devices[device].connection = nil
            connections[slot].device = -1
        }
        guard let session = devices[device].machine.presence.session else {
            // It never began: `foreground` was refused.
            armResting(device)
            return
        }
        note(.detached(session, Departure(ending), closeCode: closing?.rawValue ?? 0), device)
        tell(device: device, .detached(session, end))
    }

    mutating func acknowledge(_ slot: Int, _ seq: Seq) {
        let device = Int(connections[slot].device)
        guard device >= 0 else { return }
        if devices[device].machine.acknowledgeAll(seq, ended: &reuse.ended, spare: &reuse.work) {
            for place in reuse.ended.indices { end(reuse.ended[place], .acknowledged, device) }
            reuse.ended.removeAll(keepingCapacity: true)
            noteAcknowledged(device)
            noteProgress(slot, isEmpty: true)
            return
        }
        let before = devices[device].machine.acknowledged
        tell(device: device, .acknowledged(seq))
        guard connections[slot].kind == .device, !connections[slot].isClosing,
            devices[device].machine.acknowledged > before
        else { return }
        noteProgress(slot, isEmpty: devices[device].machine.window.inFlight == 0)
    }

    /// The kernel took bytes, or did not: reading the log goes on, or waits.
    mutating func sessionOutputMoved(_ slot: Int) {
        let isHigh = connections[slot].output.count > environment.configuration.session.highWaterMark
        if isHigh != connections[slot].session.isBlocked { tell(session: slot, .outputBlocked(isHigh)) }
        let device = Int(connections[slot].device)
        if connections[slot].isStreamHeld, connections[slot].output.count <= streamMark, device >= 0,
            connections[slot].session.state == .foreground
        {
            connections[slot].isStreamHeld = false
            pump(device)
        }
    }
}

extension SessionCloseReason {
    /// The close code on the wire.
    var code: CloseCode {
        switch self {
        case .keepAliveExpired: .keepAliveExpired
        case .ackDeadlineExpired: .ackDeadlineExpired
        case .nothingAcknowledged: .noAcknowledgement
        case .tooSlow: .tooSlow
        case .takenOver: .takenOver
        case .protocolError: .protocolError
        }
    }
}
