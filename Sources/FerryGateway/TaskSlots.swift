internal import FerryCore

/// Short numbers for tasks that messages in devices' logs belong to, so that such a message says in two bytes which task it is of.
/// A task has its number for as long as a message has it.
struct TaskSlots {
    private var entries: [(task: Identifier128, messages: Int)] = []
    private var numbers: [Identifier128: UInt16] = [:]
    private var free: [UInt16] = []

    /// 0 stands for no task; so do more tasks at once than there are numbers: of those no ends are told.
    static let none: UInt16 = 0

    var count: Int { numbers.count }

    /// nil: no message has it.
    func number(of task: Identifier128) -> UInt16? { numbers[task] }

    /// One message more is of the task.
    mutating func retain(_ task: Identifier128) -> UInt16 {
        if let number = numbers[task] {
            entries[Int(number) - 1].messages += 1
            return number
        }
        let number: UInt16
        if let reused = free.popLast() {
            number = reused
            entries[Int(number) - 1] = (task, 1)
        } else {
            guard entries.count < Int(UInt16.max) else { return Self.none }
            entries.append((task, 1))
            number = UInt16(entries.count)
        }
        numbers[task] = number
        return number
    }

    /// nil for none.
    func task(of number: UInt16) -> Identifier128? {
        let index = Int(number) - 1
        guard entries.indices.contains(index), entries[index].messages > 0 else { return nil }
        return entries[index].task
    }

    /// A message is no more in a log; nil where it has no number.
    mutating func release(_ number: UInt16) -> Identifier128? {
        let index = Int(number) - 1
        guard entries.indices.contains(index), entries[index].messages > 0 else { return nil }
        entries[index].messages -= 1
        let task = entries[index].task
        if entries[index].messages == 0 {
            numbers[task] = nil
            free.append(number)
        }
        return task
    }
}
