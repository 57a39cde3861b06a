/// The device is gone: nothing of it counts any more.
extension DeviceStateMachine {
    /// Takes out all that is kept, in order; each of it has ended. The machine is of no use afterwards.
    package mutating func removeAll() -> [KeptMessage] {
        var messages: [KeptMessage] = []
        log.appendAll(to: &messages)
        work = []
        presence = .offline
        return messages
    }
}
