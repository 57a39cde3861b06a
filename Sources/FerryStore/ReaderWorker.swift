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
        case .readControl(let ticket, let table, let partition, let after, let limit):
            do throws(StoreFailure) {
                let (rows, isEnd) = try controlRows(table, partition, after: after, limit: limit)
                return .controlRows(ticket: ticket, rows, isEnd: isEnd)
            } catch {
                options.report(error)
                return .readFailed(ticket: ticket, error)
            }
        case .append, .forget, .remains:
            return nil
        }
    }

    private func controlRows(
        _ table: ControlTable, _ partition: Partition, after: [UInt8]?, limit: Int
    ) throws(StoreFailure) -> (rows: [ControlRow], isEnd: Bool) {
        var rows: [ControlRow] = []
        var isEnd = true
        let prefix = ControlName(table, partition, []).bytes
        // No key lies between a key and the same with a zero byte behind it.
        let start = after.map { ControlName(table, partition, $0).bytes + [0] } ?? prefix
        try tables.scan(.control, from: start) { key, value throws(StoreFailure) in
            guard key.starts(with: prefix) else { return false }
            guard rows.count < limit else {
                isEnd = false
                return false
            }
            guard let row = ControlName(key)?.row([UInt8](value)) else {
                throw StoreFailure(.corrupted, "A control row cannot be read")
            }
            rows.append(row)
            return true
        }
        return (rows, isEnd)
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
