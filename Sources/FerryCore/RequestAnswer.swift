/// The first answer to a request id, kept for its window.
package struct RequestAnswer: Equatable, Sendable, BitwiseCopyable {
    package var content: Identifier128
    package var taskID: TaskID
    package var wasOnline: Bool
    /// The device was blocked: nothing was sent.
    package var wasIgnored = false
    package var acceptedAt: Instant

    package init(content: Identifier128, taskID: TaskID, wasOnline: Bool, acceptedAt: Instant) {
        self.content = content
        self.taskID = taskID
        self.wasOnline = wasOnline
        self.acceptedAt = acceptedAt
    }
}
