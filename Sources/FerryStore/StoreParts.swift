internal import FerryIO

/// The mailboxes of a store's three workers, whoever runs them.
struct StoreInboxes: Sendable {
    let journal: Mailbox<JournalItem>
    let tables: Mailbox<TablesItem>
    let reader: Mailbox<ReaderItem>
    let closing: ClosingFlag

    init() throws(StoreFailure) {
        do throws(SystemError) {
            journal = try Mailbox()
            tables = try Mailbox()
            reader = try Mailbox()
            closing = try ClosingFlag()
        } catch {
            throw StoreFailure(error)
        }
    }

    func submit(_ requests: [StoreRequest], from shard: Int) {
        var toJournal: [JournalItem] = []
        var toReader: [ReaderItem] = []
        for request in requests {
            switch request {
            case .append, .forget, .remains: toJournal.append(.request(request, shard: shard))
            case .read, .load, .readControl: toReader.append(.request(request, shard: shard))
            }
        }
        journal.post(toJournal)
        reader.post(toReader)
    }
}

/// The three workers of a store that was opened.
struct StoreWorkers: Sendable {
    var journal: JournalWorker
    var tables: TablesWorker
    var reader: ReaderWorker

    init(
        _ opened: FolderOpening.Opened, _ inboxes: StoreInboxes, options: StoreOptions,
        sinks: [@Sendable ([StoreEvent]) -> Void]
    ) {
        journal = JournalWorker(
            journal: opened.journal, highest: opened.highest, room: DiskRoom(opened.disk, options), options: options,
            files: opened.files,
            inbox: inboxes.journal, tables: inboxes.tables, sinks: sinks, closing: inboxes.closing)
        tables = TablesWorker(
            tables: opened.tables, disk: opened.disk, files: opened.files, options: options,
            forgotten: opened.forgotten,
            inbox: inboxes.tables, journal: inboxes.journal, sinks: sinks)
        reader = ReaderWorker(
            tables: opened.tables, files: opened.files, options: options, inbox: inboxes.reader, sinks: sinks)
    }
}
