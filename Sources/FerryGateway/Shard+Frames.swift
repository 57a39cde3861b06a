internal import FerryCore
internal import FerrySession
internal import FerryWire

/// What devices and links send, cut into frames.
extension Shard {
    /// Splits what came into frames. Bytes of an unfinished frame are kept; nothing else is.
    mutating func readFrames(_ slot: Int, _ bytes: UnsafeRawBufferPointer) {
        if connections[slot].kind == .device { noteHeard(slot) }
        if connections[slot].kind == .link { tell(link: slot, .bytesReceived) }
        let hadInput = !connections[slot].input.isEmpty
        // Both ways in are bounded by the largest frame; what does not fit is no frame.
        guard !hadInput || connections[slot].input.append(bytes) else { return refuseInput(slot) }
        var offset = 0
        var acknowledged: Seq?
        let token = connections.token(of: slot)
        while true {
            let pending = hadInput ? connections[slot].input.bytes : bytes
            let rest = UnsafeRawBufferPointer(rebasing: pending[offset...])
            let split = FrameSplitter.split(rest, bodyLimit: bodyLimit(slot))
            // An ack stands for those before it: of several in a row only the highest is looked at.
            if case .frame(FrameType.ack.rawValue, let body, let consumed) = split, connections[slot].kind == .device,
                let ack = try? AckFrame(body: body)
            {
                acknowledged = max(acknowledged ?? .zero, ack.seq)
                offset += consumed
                continue
            }
            if let seq = acknowledged {
                acknowledged = nil
                acknowledge(slot, seq)
                guard !connections[slot].isClosing else { return }
            }
            switch split {
            case .incomplete:
                if hadInput {
                    connections[slot].input.consume(offset)
                } else if !connections[slot].input.append(rest) {
                    return refuseInput(slot)
                }
                countBuffers(slot)
                return
            case .tooLarge:
                refuseInput(slot)
                return
            case .malformed:
                refuseFrame(slot, WireError(.protocolError, "a frame's length is not a number"))
                return
            case .frame(let type, let body, let consumed):
                offset += consumed
                let isLast = offset == pending.count
                receive(slot, type: type, body: body, isLast: isLast)
            }
            // The frame may have closed the connection, or moved it to another shard.
            guard connections.index(of: token) == slot, !connections[slot].isClosing else { return }
        }
    }

    /// Only who has proved itself may have the gateway gather more than a device may.
    private func bodyLimit(_ slot: Int) -> Int {
        connections[slot].kind == .link && links[slot]?.isStreaming == true
            ? Limits.linkFrameBytes : Limits.deviceFrameBytes
    }

    private mutating func receive(_ slot: Int, type: UInt8, body: UnsafeRawBufferPointer, isLast: Bool) {
        switch connections[slot].kind {
        case .device: receiveSessionFrame(slot, type: type, body: body)
        case .handshake: receiveHandshakeFrame(slot, type: type, body: body, isLast: isLast)
        case .link: receiveLinkFrame(slot, type: type, body: body)
        case .http, .free: break
        }
    }

    private mutating func refuseInput(_ slot: Int) {
        refuseFrame(slot, WireError(.frameTooLarge, "a frame is larger than the peer may send"))
    }

    private mutating func refuseFrame(_ slot: Int, _ error: WireError) {
        switch connections[slot].kind {
        case .device: endSession(slot, with: error.code)
        case .handshake: tell(handshake: slot, .malformedReceived(error))
        case .link: tell(link: slot, .malformedReceived(error))
        case .http, .free: break
        }
    }
}
