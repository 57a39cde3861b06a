private import FerryIO
internal import Testing

/// A line in memory does what a pair of sockets does, seen from the gateway's end.
struct MemoryNetworkTests {
    private func poll(_ network: MemoryNetwork, _ watcher: Int = 0) -> [MemoryNetwork.Event] {
        var events: [MemoryNetwork.Event] = []
        network.poll(watcher, into: &events)
        return events
    }

    private func receive(_ network: MemoryNetwork, _ line: Int32, _ room: Int = 64) -> (Socket.Transfer, [UInt8]) {
        var bytes = [UInt8](repeating: 0, count: room)
        let transfer = bytes.withUnsafeMutableBytes { network.receive(line, into: $0) }
        if case .moved(let count) = transfer { return (transfer, Array(bytes.prefix(count))) }
        return (transfer, [])
    }

    private func send(_ network: MemoryNetwork, _ line: Int32, _ bytes: [UInt8]) -> Socket.Transfer {
        bytes.withUnsafeBytes { network.send(line, $0) }
    }

    @Test func `A name is never taken for a descriptor`() {
        let network = MemoryNetwork(watchers: 1)
        #expect((0..<3).map { _ in network.open() } == [-2, -3, -4])
    }

    @Test func `Bytes travel both ways in order, and what is not read is told of again`() {
        let network = MemoryNetwork(watchers: 1)
        let line = network.open()
        network.watch(line, .readable, token: 7, watcher: 0)
        #expect(poll(network).isEmpty)
        network.peerSends(line, [1, 2, 3])
        for rest in [[UInt8]([1, 2]), [3]] {
            let events = poll(network)
            #expect(events.map(\.token) == [7])
            #expect(events.allSatisfy { $0.readable && !$0.writable && !$0.hangup })
            #expect(receive(network, line, 2).1 == rest)
        }
        #expect(poll(network).isEmpty)
        #expect(!network.mayHaveEvents(for: 0))
        #expect(receive(network, line).0 == .wouldBlock)
        #expect(send(network, line, [4]) == .moved(1))
        #expect(send(network, line, [5]) == .moved(1))
        var news: [Int32] = []
        network.takeNews(into: &news)
        #expect(news == [line])
        let taken = network.peerTakes(line)
        #expect(taken.bytes == [4, 5])
        #expect(!taken.isOver)
        network.takeNews(into: &news)
        #expect(news.isEmpty)
        #expect(network.bytesUnderWay == 0)
    }

    @Test func `A peer that does not read fills its line, and room is told of only to who asked`() {
        let network = MemoryNetwork(watchers: 1, room: 4)
        let line = network.open()
        network.watch(line, .readable, token: 7, watcher: 0)
        #expect(send(network, line, [1, 2, 3, 4, 5, 6]) == .moved(4))
        #expect(send(network, line, [5, 6]) == .wouldBlock)
        network.watch(line, [.readable, .writable], token: 7, watcher: 0)
        #expect(poll(network).isEmpty)
        #expect(network.peerTakes(line).bytes == [1, 2, 3, 4])
        #expect(poll(network).map(\.writable) == [true])
        #expect(send(network, line, [5, 6]) == .moved(2))
        network.watch(line, .readable, token: 7, watcher: 0)
        #expect(poll(network).isEmpty)
    }

    @Test func `Who does not want to read is told of nothing but a peer that is gone`() {
        let network = MemoryNetwork(watchers: 1)
        let line = network.open()
        network.watch(line, [], token: 7, watcher: 0)
        network.peerSends(line, [1])
        network.peerEnds(line)
        #expect(poll(network).isEmpty)
        network.peerCloses(line)
        for _ in 0..<2 { #expect(poll(network).map(\.hangup) == [true]) }
    }

    @Test func `The end comes behind the bytes before it`() {
        let network = MemoryNetwork(watchers: 1)
        let line = network.open()
        network.watch(line, .readable, token: 7, watcher: 0)
        network.peerSends(line, [1])
        network.peerEnds(line)
        network.peerSends(line, [2])
        #expect(receive(network, line).1 == [1])
        #expect(poll(network).map(\.readable) == [true])
        #expect(receive(network, line).0 == .ended)
        #expect(send(network, line, [9]) == .moved(1), "it still reads")
        #expect(network.endSending(line))
        #expect(send(network, line, [9]) == .failed(32))
        let taken = network.peerTakes(line)
        #expect(taken.bytes == [9])
        #expect(taken.isOver)
    }

    @Test func `What a gateway closes is over for its peer, which still gets what was sent`() {
        let network = MemoryNetwork(watchers: 1)
        let line = network.open()
        network.watch(line, .readable, token: 7, watcher: 0)
        _ = send(network, line, [1])
        network.ignore(line)
        network.close(line)
        network.peerSends(line, [2])
        #expect(poll(network).isEmpty)
        let taken = network.peerTakes(line)
        #expect(taken.bytes == [1])
        #expect(taken.isOver)
        #expect(network.bytesUnderWay == 0)
    }

    @Test(arguments: [true, false])
    func `A name is given again when both ends have closed, in either order, and bears nothing of before`(
        isPeerFirst: Bool
    ) {
        let network = MemoryNetwork(watchers: 1)
        let line = network.open()
        network.watch(line, .readable, token: 7, watcher: 0)
        network.peerSends(line, [1])
        _ = send(network, line, [2])
        if isPeerFirst { network.peerCloses(line) } else { network.close(line) }
        #expect(network.open() != line)
        if isPeerFirst { network.close(line) } else { network.peerCloses(line) }
        #expect(network.open() == line)
        #expect(poll(network).isEmpty)
        #expect(network.peerTakes(line).bytes.isEmpty)
        network.watch(line, .readable, token: 8, watcher: 0)
        #expect(poll(network).isEmpty)
        network.peerSends(line, [3])
        #expect(poll(network).first?.token == 8)
        #expect(network.bytesUnderWay == 1)
    }

    @Test func `A line that moves to another shard is told of there, with what had come before`() {
        let network = MemoryNetwork(watchers: 2)
        let line = network.open()
        network.watch(line, .readable, token: 7, watcher: 0)
        network.peerSends(line, [1])
        network.ignore(line)
        network.watch(line, .readable, token: 9, watcher: 1)
        #expect(poll(network, 1).map(\.token) == [9])
        #expect(poll(network, 0).isEmpty)
        #expect(poll(network, 1).map(\.token) == [9])
    }

    @Test func `No line starves where very many have something`() {
        let network = MemoryNetwork(watchers: 1)
        let lines = (0..<1_000).map { _ in network.open() }
        for (number, line) in lines.enumerated() {
            network.watch(line, .readable, token: UInt64(number), watcher: 0)
            network.peerSends(line, [1])
        }
        var seen: Set<UInt64> = []
        // None is read: each is told of once before any is told of again.
        for _ in 0..<4 { for event in poll(network) { seen.insert(event.token) } }
        #expect(seen.count == 1_000)
    }
}
