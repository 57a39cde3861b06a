internal import FerryCore
internal import FerryIO

/// What the reading thread is asked.
enum ReaderItem: Sendable {
    case request(StoreRequest, shard: Int)
    case stop
}

/// The reading thread: a flush's messages and single devices, from journal and tables.
struct ReaderWorker {
    let tables: any Tables
    let files: SegmentFiles
    let options: StoreOptions
    let inbox: Mailbox<ReaderItem>
    let sinks: [@Sendable ([StoreEvent]) -> Void]

    /// Works until it is told to stop.
    func run() throws(SystemError) {
        let poller = try Poller()
        try poller.add(inbox.descriptor, .readable, token: 0)
        while step() { _ = poller.wait(milliseconds: -1) }
    }

    /// Does what there is to do; false when it was told to stop.
    func step() -> Bool {
        var items: [ReaderItem] = []
        inbox.drain(into: &items)
        var answers = [[StoreEvent]](repeating: [], count: sinks.count)
        defer { for shard in answers.indices where !answers[shard].isEmpty { sinks[shard](answers[shard]) } }
        for item in items {
            switch item {
            case .request(let request, let shard):
                guard let event = answer(request) else { continue }
                answers[shard].append(event)
                // What was read is on its way while the rest is.
                guard answers[shard].count >= Self.answersAtOnce else { continue }
                sinks[shard](answers[shard])
                answers[shard] = []
            case .stop:
                return false
            }
        }
        return true
    }

    private static let answersAtOnce = 16

    private func answer(_ request: StoreRequest) -> StoreEvent? {
        switch request {
        case .read(let ticket, let references):
            do throws(StoreFailure) {
                var messages: [AcceptedMessage?] = []
                for reference in references { messages.append(try message(reference)) }
                return .messages(ticket: ticket, messages)
            } catch {
                options.report(error)
                return .readFailed(ticket: ticket, error)
            }
        case .load(let cid):
            do throws(StoreFailure) {
                return .device(cid, try DeviceRow.read(cid, from: tables)?.record)
            } catch {
                options.report(error)
                return .loadFailed(cid, error)
            }
        case .append, .forget, .remains:
            return nil
        }
    }

    /// nil for a message that is gone for good. Throws when the disk did not say.
    private func message(_ reference: MessageReference) throws(StoreFailure) -> AcceptedMessage? {
        do throws(StoreFailure) {
            return try MessageReading.message(reference, files: files, tables: tables)
        } catch {
            guard error.kind == .corrupted else { throw error }
            options.report(error)
            return nil
        }
    }
}
