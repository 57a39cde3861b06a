private import FerryIO
internal import Testing

struct MailboxTests {
    private static let patience: Int32 = 10_000

    @Test func `A burst is one wake-up, and a drained mailbox is quiet`() throws {
        let mailbox = try Mailbox<Int>()
        let poller = try Poller()
        try poller.add(mailbox.descriptor, .readable, token: 5)
        var drained: [Int] = []
        #expect(poller.wait(milliseconds: 0) == 0)
        for item in 0..<10 { mailbox.post(item) }
        mailbox.post([10, 11])
        mailbox.post([])
        #expect(poller.wait(milliseconds: Self.patience) == 1)
        #expect(poller.event(0).token == 5 && poller.event(0).readable)
        mailbox.drain(into: &drained)
        #expect(drained == Array(0..<12))
        #expect(poller.wait(milliseconds: 0) == 0)
        drained.removeAll(keepingCapacity: true)
        mailbox.drain(into: &drained)
        #expect(drained == [])
        mailbox.post([12])
        #expect(poller.wait(milliseconds: Self.patience) == 1)
    }

    @Test func `Two threads post, and one takes each item once, each thread's in order`() throws {
        let mailbox = try Mailbox<(thread: Int, item: Int)>()
        let count = 20_000
        let first = try OSThread(name: "first poster") {
            for item in 0..<count { mailbox.post((0, item)) }
        }
        let second = try OSThread(name: "second poster") {
            for item in stride(from: 0, to: count, by: 2) { mailbox.post([(1, item), (1, item + 1)]) }
        }
        let poller = try Poller()
        try poller.add(mailbox.descriptor, .readable, token: 1)
        var next = [0, 0]
        var buffer: [(thread: Int, item: Int)] = []
        var isLost = false
        while next[0] + next[1] < 2 * count && !isLost {
            // Level-triggered: a mailbox that holds something and does not say so would end here.
            isLost = poller.wait(milliseconds: Self.patience) == 0
            buffer.removeAll(keepingCapacity: true)
            mailbox.drain(into: &buffer)
            for entry in buffer {
                #expect(entry.item == next[entry.thread])
                next[entry.thread] = entry.item + 1
            }
        }
        first.join()
        second.join()
        #expect(!isLost)
        #expect(next == [count, count])
    }

    @Test func `A joined thread has done its work`() throws {
        let mailbox = try Mailbox<Int>()
        let thread = try OSThread(name: "a name that is longer than the kernel's fifteen bytes") {
            for item in 0..<1_000 { mailbox.post(item) }
        }
        thread.join()
        var buffer: [Int] = []
        mailbox.drain(into: &buffer)
        #expect(buffer == Array(0..<1_000))
    }
}
