internal import FerryIO
internal import FerryWire

/// What is written to connections: it waits in their buffers for the end of the tick.
extension Shard {
    /// Appends to the output; it leaves with all else at the end of the tick.
    mutating func write(_ slot: Int, _ bytes: [UInt8]) {
        guard !connections[slot].isClosing else { return }
        guard connections[slot].output.append(bytes) else { return closeOverfull(slot) }
        markDirty(slot)
    }

    /// More waits for the peer than a buffer holds: what it has not read yet it will not get.
    mutating func closeOverfull(_ slot: Int) {
        EventLog.write(
            .warning, "connection closed: too much waits for its peer",
            ["peer": connections[slot].peer.description, "bytes": String(connections[slot].output.count)])
        connections[slot].output.release()
        closeSilently(slot)
    }

    mutating func write(_ slot: Int, _ frame: GatewayFrame) { write(slot, frame.encoded()) }

    mutating func markDirty(_ slot: Int) {
        guard !connections[slot].isDirty else { return }
        connections[slot].isDirty = true
        dirty.append(Int32(slot))
    }
}
