internal import FerryCore
internal import FerryStats
internal import FerryTestSupport
internal import Testing

/// Books across many lives, each with another count of shards: rows go to the disk with the records that they count, or neither
/// does; only what ends by time is on disk before it is counted, and the power may go between the two.
struct ReportCrashTests {
    private struct Truth: Equatable {
        var accepted: Int64 = 0
        var acknowledged: Int64 = 0
        var expired: Int64 = 0
        var kept: Int64 { accepted - acknowledged - expired }
    }

    private struct Life {
        let app: AppID
        var now = Instant(milliseconds: 1_796_054_400_000)
        var rows: [[UInt8]: ReportRow] = [:]
        var truth: [UInt64: Truth] = [:]
        var books: [ReportBook] = []

        func terms(_ task: UInt64) -> TaskTerms {
            TaskTerms(
                task: TaskID(Identifier128(high: 7, low: task), monthDay: 1201, kind: .app),
                acceptedAt: Instant(milliseconds: 1_796_054_400_000))
        }

        /// All devices of a task are of one shard, in each life of another.
        func home(_ task: UInt64) -> Int { Int(task % UInt64(books.count)) }

        mutating func begin(shards: Int, owner: Int) {
            var audit = ReportAudit()
            for row in rows.values { audit.take(row) }
            for (task, truth) in truth { audit.keep(app, terms(task), Int(truth.kept)) }
            books = (0..<shards).map {
                ReportBook(
                    shard: $0, offset: UTCOffset(minutes: 480), now: now, retention: 90, taskLimit: 100)
            }
            for row in rows.values { books[row.writer % shards].restore(row) }
            for shard in books.indices {
                var waiting: [Identifier128: Int64] = [:]
                for (task, truth) in truth where home(task) == shard {
                    waiting[terms(task).task.value] = truth.kept
                    books[shard].restore(terms(task), of: app)
                }
                books[shard].begin(app)
                books[shard].finishRestoring(
                    kept: [waiting.values.reduce(0, +)], waiting: waiting,
                    corrections: audit.corrections { _ in shard == owner })
            }
        }

        mutating func write(_ shard: Int) {
            for row in books[shard].takeRows() {
                rows[[UInt8(row.writer)] + row.key] = row.value == nil ? nil : row
            }
        }

        /// One batch of one shard.
        mutating func accept(_ task: UInt64, _ count: Int64) {
            let shard = home(task)
            books[shard].accept(terms(task), 0, count: count)
            truth[task, default: Truth()].accepted += count
            write(shard)
        }

        mutating func acknowledge(_ task: UInt64) {
            guard let kept = truth[task]?.kept, kept > 0 else { return }
            let shard = home(task)
            books[shard].end(terms(task).task.value, 0, .acknowledged)
            truth[task]?.acknowledged += 1
            write(shard)
        }

        /// It is on disk that its time is over; whether it is counted is another matter.
        mutating func expire(_ task: UInt64, isCounted: Bool, isWritten: Bool) {
            guard let kept = truth[task]?.kept, kept > 0 else { return }
            truth[task]?.expired += kept
            let shard = home(task)
            if isCounted { books[shard].end(terms(task).task.value, 0, .ttlRanOut, count: kept) }
            if isWritten { write(shard) }
        }

        var sum: ReportCounters { books.reduce(into: ReportCounters()) { $0 += $1.sum(0) } }
    }

    @Test(arguments: 0..<UInt64(60 * Effort.factor))
    func `accepted is kept and ended, whatever the count of shards and whenever the power goes`(seed: UInt64) throws {
        var dice = SplitMix(seed: seed)
        var life = Life(app: try #require(AppID("demo")))
        for _ in 0..<8 {
            let shards = Int(dice.next() % 3) + 1
            life.begin(shards: shards, owner: Int(dice.next() % UInt64(shards)))
            for _ in 0..<dice.next() % 20 {
                life.now = life.now + .seconds(Int64(dice.next() % 8_000))
                for shard in life.books.indices { life.books[shard].timePassed(life.now) }
                let task = dice.next() % 4
                switch dice.next() % 5 {
                case 0, 1: life.accept(task, Int64(dice.next() % 5))
                case 2, 3: life.acknowledge(task)
                default: life.expire(task, isCounted: true, isWritten: dice.next() % 2 == 0)
                }
            }
            // The last thing that happens.
            if dice.next() % 2 == 0 { life.expire(dice.next() % 4, isCounted: false, isWritten: true) }
        }
        life.begin(shards: 2, owner: 1)
        var total = Truth()
        for (task, truth) in life.truth {
            var part = ReportPart()
            for book in life.books { part += book.answer(.tasks([life.terms(task).task.value]), of: life.app) }
            let told = try #require(part.tasks[life.terms(task).task.value])
            let found = Truth(
                accepted: told.accepted, acknowledged: told.ended(EndReason.acknowledged),
                expired: told.ended(EndReason.ttlRanOut))
            #expect(found == truth && told.kept == truth.kept && told.carried == 0)
            total.accepted += truth.accepted
            total.acknowledged += truth.acknowledged
            total.expired += truth.expired
        }
        #expect(life.sum.accepted == total.accepted && life.sum.carried == 0)
        #expect(life.sum.ended(EndReason.acknowledged) == total.acknowledged)
        #expect(life.sum.ended(EndReason.ttlRanOut) == total.expired)
    }

    @Test func `an end that was counted and lost is none, and nothing is accepted again for it`() throws {
        var life = Life(app: try #require(AppID("demo")))
        life.begin(shards: 2, owner: 0)
        life.accept(1, 3)
        life.acknowledge(1)
        life.acknowledge(1)
        // The row got to the disk, and the record of one acknowledgement did not; who owns the app has counted nothing.
        life.truth[1]?.acknowledged = 1
        life.begin(shards: 2, owner: 0)
        life.begin(shards: 1, owner: 0)
        for task in [life.terms(1).task.value] {
            let told = try #require(life.books[0].answer(.tasks([task]), of: life.app).tasks[task])
            #expect(told.accepted == 3 && told.ended(EndReason.acknowledged) == 1 && told.kept == 2)
        }
        #expect(life.sum.accepted == 3 && life.sum.ended(EndReason.acknowledged) == 1 && life.sum.kept == 2)
    }

    @Test func `a push to all that was stopped just before the power went did not expire`() throws {
        let app = try #require(AppID("demo"))
        var life = Life(app: app)
        life.begin(shards: 2, owner: 0)
        life.accept(1, 3)
        life.acknowledge(1)
        var audit = ReportAudit()
        for row in life.rows.values { audit.take(row) }
        audit.keep(app, life.terms(1), 0, ending: .taskStopped)
        let corrections = audit.corrections { _ in true }
        #expect(corrections.apps[app]?.ended(EndReason.taskStopped) == 2)
        #expect(corrections.tasks.map { $0.counters.ended(EndReason.taskStopped) } == [2])
        #expect(corrections.apps[app]?.endedCount == 2 && corrections.apps[app]?.accepted == 0)
    }

    /// What was acknowledged has a record; it was taken back in place of an end that has none.
    @Test func `a message that is there again since its kind was not taken takes no delivery back`() throws {
        var life = Life(app: try #require(AppID("demo")))
        life.begin(shards: 1, owner: 0)
        life.accept(1, 3)
        life.acknowledge(1)
        life.books[0].end(life.terms(1).task.value, 0, .kindNotTaken)
        life.write(0)
        life.begin(shards: 1, owner: 0)
        #expect(life.sum.ended(EndReason.acknowledged) == 1 && life.sum.ended(EndReason.kindNotTaken) == 0)
        #expect(life.sum.accepted == 3 && life.sum.kept == 2)
    }

    @Test func `messages that no row tells of are accepted`() throws {
        var life = Life(app: try #require(AppID("demo")))
        life.truth[1] = Truth(accepted: 4, acknowledged: 1)
        life.begin(shards: 2, owner: 0)
        #expect(life.sum.accepted == 3 && life.sum.kept == 3)
    }
}
