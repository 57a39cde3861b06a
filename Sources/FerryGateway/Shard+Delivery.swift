internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// The stream to a device: what its machine says is next goes to the connection, from memory when it was accepted just now,
/// else by a read of the store that nothing waits for.
extension Shard {
    private static var messagesPerRead: Int { 64 }
    private static var bytesPerRead: Int { 262_144 }

    /// Sends what may be sent. Stops at the window, at the high-water mark, or at a message that must be read first.
    mutating func pump(_ device: Int) {
        guard !devices[device].isReading, !devices[device].isBlocked,
            let slot = devices[device].connection, !connections[slot].isClosing,
            let session = devices[device].machine.presence.session
        else { return }
        while let entry = devices[device].machine.next(now: now) {
            if connections[slot].output.count > streamMark {
                connections[slot].isStreamHeld = true
                return
            }
            switch entry {
            case .gap(let gap):
                write(slot, .gap(GapFrame(gap)))
                note(.gapSent(gap), device)
                didSend(gap.upTo, device, slot)
            case .message(let message) where message.isShared:
                guard let content = sharedContent(of: message, device) else { return }
                guard takes(content.broadcast.traits.kind, slot) else {
                    tell(device: device, .kindNotTaken(message.seq))
                    continue
                }
                send(content, message, slot)
                note(.sent(message.seq, session, isOffLine: message.wasOffline), device)
                didSend(message.seq, device, slot)
            case .message(let message):
                guard let content = contentAtHand(of: message, device) else {
                    readAhead(device)
                    return
                }
                if message.isReference, isStopped(content.taskID.value) {
                    takeBackStopped(message.seq, device)
                    continue
                }
                guard takes(content.traits.kind, slot) else {
                    tell(device: device, .kindNotTaken(message.seq))
                    continue
                }
                send(content, message, slot)
                note(.sent(message.seq, session, isOffLine: message.wasOffline), device)
                didSend(message.seq, device, slot)
            }
        }
    }

    /// The common case in one step: the device is there, nothing stands before the message, and its content goes from the record
    /// straight to the connection. False: nothing was done.
    mutating func deliverAtOnce(
        _ message: KeptMessage, _ pending: PendingAccept, _ records: [UInt8], _ device: Int
    ) -> Bool {
        guard !devices[device].isReading, let slot = devices[device].connection, !connections[slot].isClosing,
            let session = devices[device].machine.presence.session,
            connections[slot].output.isEmpty || connections[slot].output.count <= streamMark,
            !connections[slot].takesCompressed || !isWorthCompressing(Int(message.payloadBytes)),
            takes(pending.order.kind, slot)
        else { return false }
        // The payload is the last part of its record.
        let end = Int(pending.offset) + Int(pending.length)
        let start = end - Int(message.payloadBytes)
        guard start >= Int(pending.offset), end <= records.count,
            let sent = devices[device].machine.keepSent(
                message, now: now, policy: environment.configuration.delivery, spare: &reuse.work)
        else { return false }
        records.withUnsafeBytes { bytes in
            send(
                sent, pending.order.kind, pending.messageID, pending.taskID,
                UnsafeRawBufferPointer(rebasing: bytes[start..<end]), slot)
        }
        note(.sent(sent.seq, session, isOffLine: sent.wasOffline), device)
        noteSent(slot)
        return true
    }

    private mutating func didSend(_ seq: Seq, _ device: Int, _ slot: Int) {
        devices[device].machine.didSend(seq)
        noteSent(slot)
    }

    private mutating func send(_ content: AcceptedMessage, _ message: KeptMessage, _ slot: Int) {
        if connections[slot].takesCompressed, sendCompressed(content, isOffLine: message.wasOffline, slot) { return }
        content.payload.withUnsafeBytes {
            send(message, content.traits.kind, content.messageID, content.taskID, $0, slot)
        }
    }

    private mutating func send(
        _ message: KeptMessage, _ kind: ContentKind, _ messageID: MessageID, _ taskID: TaskID,
        _ payload: UnsafeRawBufferPointer, _ slot: Int
    ) {
        let flags = PushFrame.Flags(kind, isOffLine: message.wasOffline)
        let size = PushFrame.encodedSize(seq: message.seq, payloadCount: payload.count)
        let fits = connections[slot].output.append(upTo: size, from: &reuse.blocks) { buffer in
            PushFrame.write(
                to: buffer, seq: message.seq, flags: flags, messageID: messageID, taskID: taskID, payload: payload)
        }
        if fits { markDirty(slot) } else { closeOverfull(slot) }
    }

    private mutating func send(_ content: BroadcastContent, _ message: KeptMessage, _ slot: Int) {
        var flags = PushFrame.Flags(content.broadcast.traits.kind, isOffLine: message.wasOffline)
        var frame = content.frame
        if connections[slot].takesCompressed, let compressed = content.compressedFrame {
            frame = compressed
            flags.insert(.compressed)
            counters.compression.count(before: content.broadcast.payload.count, after: content.compressedCount)
        }
        let size = frame.encodedSize(seq: message.seq)
        let fits = connections[slot].output.append(upTo: size, from: &reuse.blocks) { buffer in
            frame.write(to: buffer, seq: message.seq, flags: flags)
        }
        if fits { markDirty(slot) } else { closeOverfull(slot) }
    }

    /// Whether the client of the connection takes a push of this kind: it said so when it logged in, and a transmission
    /// everyone takes.
    private func takes(_ kind: ContentKind, _ slot: Int) -> Bool {
        kind == .transmission || connections[slot].takesTyped
    }

    private mutating func readAhead(_ device: Int) {
        guard case .attached(let session) = devices[device].machine.presence else { return }
        let cid = devices[device].cid
        // No more than may be sent: what is read beyond that would be read again.
        let wanted = devices[device].machine.upcoming(
            count: Self.messagesPerRead, bytes: min(Self.bytesPerRead, streamMark))
        guard !wanted.isEmpty else { return }
        devices[device].isReading = true
        lastTicket &+= 1
        reads[lastTicket] = .stream(cid, session, wanted.map(\.seq))
        let references = wanted.map { MessageReference(cid: cid, seq: $0.seq, location: $0.location) }
        reuse.reads.append(.read(ticket: lastTicket, references))
    }

    /// At the end of the turn what is shared with other threads is touched once: the reader is asked for all at once, and the
    /// store's budget gets back the room of all messages that ended.
    mutating func endDelivery() {
        if !reuse.reads.isEmpty {
            environment.store.submit(reuse.reads, from: index)
            reuse.reads.removeAll()
        }
        if reuse.returnedBytes != 0 {
            environment.storeBudget.change(by: -reuse.returnedBytes)
            reuse.returnedBytes = 0
        }
    }

    mutating func messagesRead(_ ticket: UInt64, _ messages: [AcceptedMessage?]) {
        guard let read = reads.removeValue(forKey: ticket), let messages = withContents(messages, ticket, read)
        else { return }
        messagesRead(read, messages)
    }

    mutating func messagesRead(_ read: PendingRead, _ messages: [AcceptedMessage?]) {
        switch read {
        case .stream(let cid, let session, let wanted):
            guard let device = devices.index(of: cid) else { return }
            devices[device].isReading = false
            guard devices[device].machine.presence == .attached(session) else {
                pump(device)
                return
            }
            for (seq, message) in zip(wanted, messages) where message == nil { reportUnreadable(seq, device) }
            atHand = messages.compactMap { $0 }
            atHandCursor = 0
            pump(device)
            atHand = []
        case .alert(let cid, let plan):
            guard let content = messages.first ?? nil, let device = devices.index(of: cid) else {
                stubAnswered(cid, plan, .refused("the message is no longer there"))
                return
            }
            if case .own(let message) = plan, !devices[device].machine.wantsStub(of: message) {
                withdrawStub(message.seq, device)
                return
            }
            requestOwnStub(content, plan, device)
        case .stopping(let look): stopRead(look, messages)
        case .revoking(let revoke): revokeRead(revoke, messages)
        case .control: return
        }
    }

    /// What the disk failed to read is asked for once more.
    mutating func readAgain() {
        let again = deferredReads
        deferredReads = []
        for read in again {
            switch read {
            case .control(let question): readControl(question)
            case .stopping(let look): self.read(look, read)
            case .revoking(let revoke): goOn(revoke)
            case .stream(let cid, _, _):
                guard let device = devices.index(of: cid) else { continue }
                devices[device].isReading = false
                pump(device)
            case .alert(let cid, let plan):
                stubsInFlight -= 1
                if let device = devices.index(of: cid) { requestStub(plan, device) }
            }
        }
    }

    /// A kept message that the store cannot give: its stream goes on without it, and operators are told.
    private mutating func reportUnreadable(_ seq: Seq, _ device: Int) {
        guard devices[device].machine.isKept(seq) else { return }
        EventLog.write(
            .error, "kept message cannot be read",
            ["cid": devices[device].cid.description, "seq": seq.description])
        tell(device: device, .unreadable(seq))
    }

    /// The content of `message` if it is at hand. What is at hand is in order of `seq`, and so are the questions.
    private mutating func contentAtHand(of message: KeptMessage, _ device: Int) -> AcceptedMessage? {
        while atHandCursor < atHand.count, atHand[atHandCursor].seq < message.seq { atHandCursor += 1 }
        guard atHandCursor < atHand.count, atHand[atHandCursor].seq == message.seq,
            atHand[atHandCursor].cid == devices[device].cid
        else { return nil }
        return atHand[atHandCursor]
    }
}

/// What is used again and again on the way of messages to their devices, so that none takes memory for itself.
struct DeliveryMemory: ~Copyable {
    var blocks = SpareBlocks()
    var work = SpareWork()
    /// What one acknowledgement ended; empty between two.
    var ended: [KeptMessage] = []
    /// Of this turn.
    var reads: [StoreRequest] = []
    /// Of this turn: room in the store that is free again.
    var returnedBytes = 0
}
