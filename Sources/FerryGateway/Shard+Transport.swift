internal import FerryIO

/// The one place where connections' bytes come in and go out, and where a shard is told of them: sockets and their poller or,
/// where the gateway was given one, lines of a network in memory. A socket pays one comparison for that.
extension Shard {
    /// What there is to read, into `readBuffer`.
    mutating func receive(_ slot: Int) -> Socket.Transfer {
        let transport = connections[slot].transport
        if transport.isInMemory { return network?.receive(transport.descriptor, into: readBuffer) ?? .ended }
        return Socket.receive(transport.descriptor, into: readBuffer)
    }

    /// One send of the output.
    mutating func send(_ slot: Int) -> Socket.Transfer {
        let bytes = connections[slot].output.bytes
        let result = send(connections[slot].transport, bytes)
        connections[slot].transport.sent(bytes.count, result)
        return result
    }

    func send(_ transport: Transport, _ bytes: UnsafeRawBufferPointer) -> Socket.Transfer {
        if transport.isInMemory { return network?.send(transport.descriptor, bytes) ?? .ended }
        return Socket.send(transport.descriptor, bytes)
    }

    /// Has the poller watch a connection that came in just now.
    func beginWatching(_ slot: Int) throws(SystemError) {
        let descriptor = connections[slot].transport.descriptor
        let token = connections.token(of: slot)
        if connections[slot].transport.isInMemory {
            network?.watch(descriptor, .readable, token: token, watcher: index)
        } else {
            try poller.add(descriptor, .readable, token: token)
        }
    }

    /// Tells the poller what the transport wants now.
    func watch(_ slot: Int) {
        var interest: Poller.Interest = connections[slot].isReadPaused ? [] : .readable
        if connections[slot].transport.wantsWrite { interest.insert(.writable) }
        let descriptor = connections[slot].transport.descriptor
        let token = connections.token(of: slot)
        if connections[slot].transport.isInMemory {
            network?.watch(descriptor, interest, token: token, watcher: index)
        } else {
            try? poller.modify(descriptor, interest, token: token)
        }
    }

    func endWatching(_ transport: Transport) {
        if transport.isInMemory { network?.ignore(transport.descriptor) } else { poller.remove(transport.descriptor) }
    }

    /// Tells the peer that nothing more comes; false when the connection is gone already.
    func endSending(_ transport: Transport) -> Bool {
        if transport.isInMemory { return network?.endSending(transport.descriptor) ?? false }
        return Socket.shutdownWrite(transport.descriptor)
    }

    func close(_ transport: Transport) {
        if transport.isInMemory { network?.close(transport.descriptor) } else { Socket.close(transport.descriptor) }
    }

    /// Events of lines in memory, as those of sockets are taken before.
    mutating func takeLineEvents(_ network: MemoryNetwork) {
        var events: [MemoryNetwork.Event] = []
        swap(&events, &lineEvents)
        network.poll(index, into: &events)
        for event in events {
            handle(event.token, readable: event.readable, writable: event.writable, hangup: event.hangup)
            takeOwnOrders()
            submitEarly()
        }
        swap(&events, &lineEvents)
    }
}
