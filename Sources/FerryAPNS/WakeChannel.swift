/// What a wake-up channel says of one stub.
package enum StubAnswer: Equatable, Sendable {
    /// The channel has taken it for good.
    case accepted
    /// It never will; the reason is for operators.
    case refused(String)
}

/// A way to wake the owner of an offline device.
package protocol WakeChannel: AnyObject, Sendable {
    /// Takes `stub` and returns at once; calls `answer` exactly once, from any thread.
    func request(_ stub: StubRequest, answer: @escaping @Sendable (StubAnswer) -> Void)
    /// Finishes what was requested and stops.
    func close()
}
