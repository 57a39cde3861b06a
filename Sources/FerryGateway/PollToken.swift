/// What the poller calls the things that are not connections; a connection's generation is never this high.
enum PollToken {
    static let mailbox = UInt64.max
    static let deviceListener = UInt64.max - 1
    static let httpListener = UInt64.max - 2
    static let linkListener = UInt64.max - 3
}
