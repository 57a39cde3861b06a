internal import FerryCore
package import FerryIO
internal import FerryStats
internal import Synchronization

/// The timeline log of a single gateway, with a thread that writes and one that reads. Nobody waits for either.
package final class EmbeddedTimeline: Timeline {
    fileprivate enum Item: Sendable {
        case chunk([UInt8], count: Int)
        case question(TimelineQuestion, @Sendable (TimelineOutcome) -> Void)
        case read(TimelineQuestion, TimelineFolder.State, @Sendable (TimelineOutcome) -> Void)
        case stop
    }

    private let folder: TimelineFolder
    private let inbox: Mailbox<Item>
    private let pending: Pending
    private let threads: [OSThread]

    /// What waits.
    fileprivate final class Pending: Sendable {
        let bytes = Atomic<Int>(0)
        let lost = Atomic<UInt64>(0)
        let questions = Atomic<Int>(0)
        let refusesQuestions = Atomic<Bool>(false)
    }

    /// Goes on with what `disk` holds.
    package init(_ options: TimelineOptions, disk: any Disk) throws(SystemError) {
        let folder = TimelineFolder(disk: disk, options: options)
        let pending = Pending()
        let inbox = try Mailbox<Item>()
        let questions = try Mailbox<Item>()
        self.folder = folder
        self.pending = pending
        self.inbox = inbox
        let writing = try Poller()
        let reading = try Poller()
        try writing.add(inbox.descriptor, .readable, token: 0)
        try reading.add(questions.descriptor, .readable, token: 0)
        var writer: WriterLoop? = WriterLoop(
            folder: folder, startedAt: options.clock(), inbox: inbox, questions: questions, pending: pending,
            poller: writing, pause: try Poller())
        var reader: ReaderLoop? = ReaderLoop(
            folder: folder, questions: questions, pending: pending, poller: reading)
        threads = [
            try OSThread(name: "timeline") { if let writer = writer.take() { writer.run() } },
            try OSThread(name: "timeline-reader") { if let reader = reader.take() { reader.run() } },
        ]
    }

    package func note(_ chunk: [UInt8], count: Int) {
        let bytes = pending.bytes.wrappingAdd(chunk.count, ordering: .relaxed).newValue
        guard bytes <= folder.options.pendingBytes else {
            pending.bytes.wrappingSubtract(chunk.count, ordering: .relaxed)
            pending.lost.wrappingAdd(UInt64(count), ordering: .relaxed)
            return
        }
        inbox.post(.chunk(chunk, count: count))
    }

    package func ask(_ question: TimelineQuestion, answer: @escaping @Sendable (TimelineOutcome) -> Void) {
        let open = pending.questions.wrappingAdd(1, ordering: .relaxed).newValue
        guard open <= folder.options.openQuestions else {
            pending.questions.wrappingSubtract(1, ordering: .relaxed)
            return answer(.busy)
        }
        inbox.post(.question(question, answer))
    }

    package func refuseQuestions() { pending.refusesQuestions.store(true, ordering: .relaxed) }

    package func close() {
        refuseQuestions()
        inbox.post(.stop)
        for thread in threads { thread.join() }
    }

    private struct WriterLoop: ~Copyable {
        let folder: TimelineFolder
        let startedAt: Instant
        let inbox: Mailbox<Item>
        let questions: Mailbox<Item>
        let pending: Pending
        let poller: Poller
        /// Watches nothing: a sleep.
        let pause: Poller

        /// So long facts gather before they are written: one wake-up of the thread serves many ticks of all shards.
        private static let gathering: Int32 = 20
        private static let syncInterval = Duration.seconds(1)
        /// So often the disk's room is looked at while nothing is noted, in milliseconds.
        private static let watchInterval: Int32 = 1_000

        consuming func run() {
            var writer = TimelineWriter(folder)
            writer.open()
            writer.append(.started, at: startedAt)
            writer.flush()
            let clock = WallClock()
            var nextSync = clock.now
            var items: [Item] = []
            var isStopping = false
            while !isStopping {
                let idle: Int32 = writer.needsWatch ? Self.watchInterval : -1
                let wait = writer.isDirty ? max(0, Int32(clamping: (nextSync - clock.now).inMilliseconds)) : idle
                if poller.wait(milliseconds: wait) > 0 { _ = pause.wait(milliseconds: Self.gathering) }
                inbox.drain(into: &items)
                var bytes = 0
                for item in items {
                    switch item {
                    case .chunk(let chunk, let count):
                        writer.append(chunk, count: count)
                        bytes += chunk.count
                    case .question(let question, let answer):
                        // All that was noted before it is in the files when it is answered.
                        writer.flush()
                        writer.enforce()
                        questions.post(.read(question, folder.snapshot(), answer))
                    case .read: break
                    case .stop: isStopping = true
                    }
                }
                items.removeAll(keepingCapacity: true)
                writer.lose(pending.lost.exchange(0, ordering: .relaxed))
                if isStopping { writer.append(.stopped) }
                writer.flush()
                writer.watchRoom()
                pending.bytes.wrappingSubtract(bytes, ordering: .relaxed)
                if isStopping || (writer.isDirty && clock.now >= nextSync) {
                    writer.sync()
                    nextSync = clock.now + Self.syncInterval
                }
            }
            questions.post(.stop)
        }
    }

    private struct ReaderLoop: ~Copyable {
        let folder: TimelineFolder
        let questions: Mailbox<Item>
        let pending: Pending
        let poller: Poller

        consuming func run() {
            var items: [Item] = []
            while true {
                _ = poller.wait(milliseconds: -1)
                questions.drain(into: &items)
                for item in items {
                    switch item {
                    case .read(let question, let moment, let answer):
                        let refused = pending.refusesQuestions.load(ordering: .relaxed)
                        let outcome = refused ? .busy : folder.outcome(question, at: moment)
                        pending.questions.wrappingSubtract(1, ordering: .relaxed)
                        answer(outcome)
                    case .stop: return
                    case .chunk, .question: break
                    }
                }
                items.removeAll(keepingCapacity: true)
            }
        }
    }
}

extension TimelineFolder {
    fileprivate func outcome(_ question: TimelineQuestion, at moment: State) -> TimelineOutcome {
        guard question.tasks.isEmpty else { return .found(find(question.tasks, at: moment)) }
        let (facts, coverage) = answer(question, at: moment)
        return .answered(facts, coverage)
    }
}

/// The same log without threads: what is noted is written at once, what is asked is answered at once. For simulation and
/// tests.
package final class SteppedTimeline: Timeline {
    private let folder: TimelineFolder
    private let writer: Mutex<TimelineWriter>

    package init(_ options: TimelineOptions, disk: any Disk) {
        let folder = TimelineFolder(disk: disk, options: options)
        self.folder = folder
        var opened = TimelineWriter(folder)
        opened.open()
        opened.append(.started)
        opened.flush()
        writer = Mutex(opened)
    }

    package func note(_ chunk: [UInt8], count: Int) {
        writer.withLock { writer in
            writer.append(chunk, count: count)
            writer.flush()
        }
    }

    /// Returns when what was noted is on the disk.
    package func sync() { writer.withLock { $0.sync() } }

    package func ask(_ question: TimelineQuestion, answer: @escaping @Sendable (TimelineOutcome) -> Void) {
        writer.withLock { $0.enforce() }
        answer(folder.outcome(question, at: folder.snapshot()))
    }

    /// None ever waits here.
    package func refuseQuestions() {}

    package func close() {
        writer.withLock { writer in
            writer.append(.stopped)
            writer.flush()
            writer.sync()
        }
    }
}
