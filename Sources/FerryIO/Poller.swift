internal import CLinux

/// An epoll instance with its event buffer. Level-triggered. One thread's own.
package struct Poller: ~Copyable {
    package struct Interest: OptionSet, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }
        package static let readable = Interest(rawValue: UInt32(CLINUX_READABLE))
        package static let writable = Interest(rawValue: UInt32(CLINUX_WRITABLE))
    }

    private let epoll: Int32
    private static let capacity = 256
    private let events: UnsafeMutablePointer<clinux_event>

    package init() throws(SystemError) {
        epoll = try SystemError.check("create an epoll instance", clinux_epoll_create())
        events = .allocate(capacity: Self.capacity)
        events.initialize(repeating: clinux_event(token: 0, flags: 0), count: Self.capacity)
    }

    deinit {
        events.deallocate()
        _ = clinux_close(epoll)
    }

    package func add(_ descriptor: Int32, _ interest: Interest, token: UInt64) throws(SystemError) {
        _ = try SystemError.check("watch a descriptor", clinux_epoll_add(epoll, descriptor, interest.rawValue, token))
    }

    /// Watches a listener that other threads watch too: a connection wakes one of them.
    package func addShared(_ descriptor: Int32, token: UInt64) throws(SystemError) {
        _ = try SystemError.check("watch a listener", clinux_epoll_add_exclusive(epoll, descriptor, token))
    }

    package func modify(_ descriptor: Int32, _ interest: Interest, token: UInt64) throws(SystemError) {
        _ = try SystemError.check(
            "watch a descriptor", clinux_epoll_modify(epoll, descriptor, interest.rawValue, token))
    }

    package func remove(_ descriptor: Int32) {
        _ = clinux_epoll_remove(epoll, descriptor)
    }

    /// Waits up to `milliseconds` (-1: for ever) and answers how many events there are; read them with `event(_:)`.
    package func wait(milliseconds: Int32) -> Int {
        max(0, Int(clinux_epoll_wait(epoll, events, Int32(Self.capacity), milliseconds)))
    }

    /// The token of event `index` and what happened to its descriptor. `index` is below what `wait` answered.
    package func event(_ index: Int) -> (token: UInt64, readable: Bool, writable: Bool, hangup: Bool) {
        precondition(index >= 0 && index < Self.capacity)
        let event = events[index]
        return (
            event.token, event.flags & UInt32(CLINUX_READABLE) != 0,
            event.flags & UInt32(CLINUX_WRITABLE) != 0, event.flags & UInt32(CLINUX_HANGUP) != 0
        )
    }
}
