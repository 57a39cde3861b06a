internal import FerryCore
@testable internal import FerryStore
internal import Testing

/// A write of the tables before it is written.
struct TableWriteTests {
    private func rows(_ write: TableWrite) -> [String] {
        var found: [String] = []
        write.visit { key, value in
            found.append("\(Array(key)) \(value.map { "\(Array($0))" } ?? "deleted")")
        }
        return found
    }

    @Test func `Changes are visited in the order of tables and keys, each key once, the last put holds`() {
        var write = TableWrite()
        write.put(.requests, key: [1], value: [1])
        write.put(.devices, key: [9, 9], value: [2])
        write.put(.devices, key: [9], value: [3])
        write.put(.devices, key: [9, 9], value: [4, 4])
        write.put(.meta, key: [], value: [])
        #expect(rows(write) == ["[1, 9] [3]", "[1, 9, 9] [4, 4]", "[3, 1] [1]", "[5] []"])
    }

    @Test func `Keys that differ beyond their first sixteen bytes, or in length alone, are told apart`() {
        let long = [UInt8](repeating: 7, count: 24)
        let keys = [long + [2], long, long + [1, 0], long + [1], Array(long.dropLast()), [7, 0], [7]]
        var write = TableWrite()
        for key in keys { write.put(.queue, key: key, value: []) }
        let sorted = keys.sorted { $0.lexicographicallyPrecedes($1) }
        #expect(rows(write) == sorted.map { "\([Table.queue.rawValue] + $0) []" })
    }

    @Test(arguments: [false, true])
    func `What is deleted stays deleted, put before or after`(isDeletedFirst: Bool) {
        let message = MessageKey(cid: Sample.cid(1), seq: Seq(2))
        var write = TableWrite()
        if isDeletedFirst { write.delete(message) }
        [UInt8]([1, 2]).withUnsafeBytes { write.put(message, body: $0) }
        if !isDeletedFirst { write.delete(message) }
        #expect(rows(write) == ["\([Table.queue.rawValue] + QueueRow.key(message.cid, message.seq)) deleted"])
    }
}
