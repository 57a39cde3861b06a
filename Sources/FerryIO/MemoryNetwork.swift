/// Connections whose bytes stay in this process: as many as memory holds, where a process may open some thousand sockets
/// only. Each line behaves as a pair of connected non-blocking stream sockets does, at one end of which a gateway's shard
/// reads and writes and at the other a peer. One thread's own.
///
/// A line's name is a number below −1, so that it stands where a descriptor stands and is never taken for one.
package final class MemoryNetwork {
    private struct Line {
        var toGateway: [UInt8] = []
        var toPeer: [UInt8] = []
        var token: UInt64 = 0
        /// The shard that watches it; -1: nobody.
        var watcher: Int32 = -1
        var interest: Poller.Interest = []
        var flags: Flags = []
    }

    private struct Flags: OptionSet {
        let rawValue: UInt8
        /// In its watcher's queue.
        static let queued = Self(rawValue: 1)
        /// In `news`.
        static let noted = Self(rawValue: 2)
        static let peerHasEnded = Self(rawValue: 4)
        static let peerHasClosed = Self(rawValue: 8)
        static let gatewayHasEnded = Self(rawValue: 16)
        static let gatewayHasClosed = Self(rawValue: 32)
        static let free = Self(rawValue: 64)
    }

    /// Lines that may have an event, in the order in which they got it.
    private struct Queue {
        var names: [Int32] = []
        var head = 0
        var isEmpty: Bool { head == names.count }

        mutating func next() -> Int32 {
            defer {
                head += 1
                if head == names.count {
                    names.removeAll(keepingCapacity: true)
                    head = 0
                } else if head >= 65_536 {
                    names.removeFirst(head)
                    head = 0
                }
            }
            return names[head]
        }
    }

    /// What happened at the gateway's end of a line: as `Poller.event` tells of a socket.
    package struct Event {
        package let token: UInt64
        package let readable: Bool
        package let writable: Bool
        package let hangup: Bool
    }

    /// About what a socket takes.
    private static let usualRoom = 262_144
    /// As many events at once as `Poller` has.
    private static let eventsAtOnce = 256
    private static let brokenPipe: Int32 = 32

    /// Bytes that a line takes towards its peer while that does not read.
    private let room: Int
    private var lines: [Line] = []
    private var free: [Int32] = []
    private var queues: [Queue]
    private var news: [Int32] = []
    /// Bytes that are in lines now.
    package private(set) var bytesUnderWay = 0

    /// - Parameters:
    ///   - watchers: how many shards there are.
    ///   - room: bytes that a line takes towards its peer while that does not read; nil: as many as is usual.
    package init(watchers: Int, room: Int? = nil) {
        queues = Array(repeating: Queue(), count: max(1, watchers))
        self.room = max(1, room ?? Self.usualRoom)
    }

    private static func index(_ name: Int32) -> Int { -2 - Int(name) }

    // MARK: - The peer's end

    /// A line that nobody watches yet; hand its name to a gateway.
    package func open() -> Int32 {
        if let name = free.popLast() {
            lines[Self.index(name)] = Line()
            return name
        }
        lines.append(Line())
        return Int32(-1 - lines.count)
    }

    /// Bytes of memory that the lines take beside what is under way.
    package var heldBytes: Int {
        lines.capacity * MemoryLayout<Line>.stride
            + (free.capacity + news.capacity + queues.reduce(0) { $0 + $1.names.capacity }) * MemoryLayout<Int32>.stride
    }

    /// The peer sends; nothing once either end has closed.
    package func peerSends(_ name: Int32, _ bytes: some Collection<UInt8>) {
        let index = Self.index(name)
        guard !bytes.isEmpty, lines[index].flags.isDisjoint(with: [.peerHasEnded, .gatewayHasClosed]) else { return }
        bytesUnderWay += bytes.count
        lines[index].toGateway.append(contentsOf: bytes)
        queue(index)
    }

    /// All that has come for the peer, and whether nothing more will.
    package func peerTakes(_ name: Int32) -> (bytes: [UInt8], isOver: Bool) {
        let index = Self.index(name)
        var bytes: [UInt8] = []
        swap(&bytes, &lines[index].toPeer)
        bytesUnderWay -= bytes.count
        if !bytes.isEmpty, lines[index].interest.contains(.writable) { queue(index) }
        return (bytes, !lines[index].flags.isDisjoint(with: [.gatewayHasEnded, .gatewayHasClosed]))
    }

    /// Lines to whose peer something has come, or which the gateway has closed, each once.
    package func takeNews(into names: inout [Int32]) {
        names.removeAll(keepingCapacity: true)
        swap(&names, &news)
        for name in names { lines[Self.index(name)].flags.remove(.noted) }
    }

    /// The peer sends nothing more, and still reads.
    package func peerEnds(_ name: Int32) {
        let index = Self.index(name)
        lines[index].flags.insert(.peerHasEnded)
        queue(index)
    }

    /// The peer is gone. Its name may be given to another line once the gateway has closed too.
    package func peerCloses(_ name: Int32) {
        let index = Self.index(name)
        guard !lines[index].flags.contains(.peerHasClosed) else { return }
        lines[index].flags.formUnion([.peerHasEnded, .peerHasClosed])
        bytesUnderWay -= lines[index].toPeer.count
        lines[index].toPeer = []
        queue(index)
        freeIfOver(index)
    }

    // MARK: - The gateway's end

    package func receive(_ name: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Socket.Transfer {
        let index = Self.index(name)
        let count = min(lines[index].toGateway.count, buffer.count)
        guard count > 0 else { return lines[index].flags.contains(.peerHasEnded) ? .ended : .wouldBlock }
        lines[index].toGateway.withUnsafeBytes { bytes in
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        }
        if count == lines[index].toGateway.count {
            lines[index].toGateway = []
        } else {
            lines[index].toGateway.removeFirst(count)
        }
        bytesUnderWay -= count
        return .moved(count)
    }

    package func send(_ name: Int32, _ bytes: UnsafeRawBufferPointer) -> Socket.Transfer {
        let index = Self.index(name)
        guard lines[index].flags.isDisjoint(with: [.peerHasClosed, .gatewayHasEnded]) else {
            return .failed(Self.brokenPipe)
        }
        let count = min(bytes.count, room - lines[index].toPeer.count)
        guard count > 0 else { return bytes.isEmpty ? .moved(0) : .wouldBlock }
        lines[index].toPeer.append(contentsOf: bytes[..<count])
        bytesUnderWay += count
        note(index)
        return .moved(count)
    }

    /// Tells `watcher` of events of the line from now on, in place of what was asked before.
    package func watch(_ name: Int32, _ interest: Poller.Interest, token: UInt64, watcher: Int) {
        let index = Self.index(name)
        // In the queue of who watched before, it is passed over.
        if lines[index].watcher != Int32(watcher) { lines[index].flags.remove(.queued) }
        lines[index].watcher = Int32(watcher)
        lines[index].interest = interest
        lines[index].token = token
        queue(index)
    }

    /// Nobody watches the line.
    package func ignore(_ name: Int32) { lines[Self.index(name)].watcher = -1 }

    /// The gateway sends nothing more; false when the peer is gone already.
    package func endSending(_ name: Int32) -> Bool {
        let index = Self.index(name)
        lines[index].flags.insert(.gatewayHasEnded)
        note(index)
        queue(index)
        return !lines[index].flags.contains(.peerHasClosed)
    }

    /// The gateway is gone.
    package func close(_ name: Int32) {
        let index = Self.index(name)
        guard !lines[index].flags.contains(.gatewayHasClosed) else { return }
        lines[index].flags.formUnion([.gatewayHasEnded, .gatewayHasClosed])
        lines[index].watcher = -1
        bytesUnderWay -= lines[index].toGateway.count
        lines[index].toGateway = []
        note(index)
        freeIfOver(index)
    }

    /// Whether `poll` may have something to tell.
    package func mayHaveEvents(for watcher: Int) -> Bool { !queues[watcher].isEmpty }

    /// What there is to tell a watcher now, at most 256 events. As with a level-triggered poller, what is not dealt with is
    /// told again.
    package func poll(_ watcher: Int, into events: inout [Event]) {
        events.removeAll(keepingCapacity: true)
        // What goes back into the queue is looked at again at the next call, not in this.
        var left = queues[watcher].names.count - queues[watcher].head
        while left > 0, events.count < Self.eventsAtOnce {
            left -= 1
            let index = Self.index(queues[watcher].next())
            lines[index].flags.remove(.queued)
            guard lines[index].watcher == Int32(watcher), let event = event(index) else { continue }
            events.append(event)
            queue(index)
        }
    }

    private func event(_ index: Int) -> Event? {
        let flags = lines[index].flags
        let interest = lines[index].interest
        let isOver = flags.contains(.peerHasClosed)
        let readable =
            interest.contains(.readable) && (!lines[index].toGateway.isEmpty || flags.contains(.peerHasEnded))
        let writable = interest.contains(.writable) && (isOver || lines[index].toPeer.count < room)
        guard readable || writable || isOver else { return nil }
        return Event(token: lines[index].token, readable: readable, writable: writable, hangup: isOver)
    }

    // MARK: - Who is to look

    private func queue(_ index: Int) {
        let watcher = lines[index].watcher
        guard watcher >= 0, !lines[index].flags.contains(.queued) else { return }
        lines[index].flags.insert(.queued)
        queues[Int(watcher)].names.append(Int32(-2 - index))
    }

    private func note(_ index: Int) {
        guard lines[index].flags.isDisjoint(with: [.noted, .peerHasClosed]) else { return }
        lines[index].flags.insert(.noted)
        news.append(Int32(-2 - index))
    }

    private func freeIfOver(_ index: Int) {
        guard lines[index].flags.isSuperset(of: [.peerHasClosed, .gatewayHasClosed]),
            !lines[index].flags.contains(.free)
        else { return }
        lines[index] = Line()
        lines[index].flags = .free
        free.append(Int32(-2 - index))
    }
}
