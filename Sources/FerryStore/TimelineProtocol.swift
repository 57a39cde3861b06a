package import FerryCore
package import FerryStats

/// What is asked of the timeline log.
package struct TimelineQuestion: Sendable {
    package var device: CID
    package var target: TimelineTarget?
    /// Facts in the answer, 1 at least; the newest where there are more. With a target the answer has all of the target's.
    package var limit: Int
    /// Where there are any, the question is of these tasks of one message each, whatever their devices.
    package var tasks: [Identifier128] = []

    package init(device: CID, target: TimelineTarget?, limit: Int) {
        self.device = device
        self.target = target
        self.limit = max(1, limit)
    }

    package init(tasks: [Identifier128]) {
        self.init(device: FactWriter.gateway, target: nil, limit: 1)
        self.tasks = tasks
    }
}

package enum TimelineOutcome: Sendable {
    /// In order of time.
    case answered([TimedFact], TimelineCoverage)
    /// Of a question of tasks: those that the log tells of.
    case found([FoundTask])
    /// Too many questions wait already.
    case busy
}

/// The log of what happened, of stated age and size. It is no part of what is promised to survive: facts may be lost to a
/// crash, and are to a disk that is full or slow, since nobody ever waits for it. Safe to call from any thread; calls return
/// at once.
package protocol Timeline: AnyObject, Sendable {
    /// Takes a chunk of `FactWriter`.
    func note(_ chunk: [UInt8], count: Int)
    /// The answer holds every fact that the same thread has noted before, but for those that were lost, and none that it
    /// notes after. `answer` is called on a thread of the log.
    func ask(_ question: TimelineQuestion, answer: @escaping @Sendable (TimelineOutcome) -> Void)
    /// From now on questions are answered `busy`, those that wait too.
    func refuseQuestions()
    /// Writes what was noted, and that the gateway stopped in good order.
    func close()
}

package struct TimelineOptions: Sendable {
    /// Facts are kept so long at least, where `bytes` suffices.
    package var age = Duration.seconds(24 * 3_600)
    /// Of all files together.
    package var bytes = 2 << 30
    /// Left free on the disk: the oldest files go, and facts are lost, before the log takes that from the journal.
    package var reservedBytes = 0
    /// Of chunks that wait for the disk; what is above is lost, and that is told.
    package var pendingBytes = 8 << 20
    /// Questions that may wait.
    package var openQuestions = 16
    package var clock: @Sendable () -> Instant
    /// Told when the log cannot be written, once until it can again. Called on the log's threads.
    package var report: @Sendable (StoreFailure) -> Void = { _ in }

    package init(clock: @escaping @Sendable () -> Instant) { self.clock = clock }

    /// Of one file: a sixteenth of the budget, so that removing the oldest whole keeps most of it.
    var fileBytes: Int { min(16 << 20, max(16 << 10, bytes / 16)) }
    /// After so long a file is closed though it has room, so that its facts can age out.
    var fileAge: Duration { .milliseconds(max(1_000, age.inMilliseconds / 24)) }
}
