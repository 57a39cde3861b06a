internal import CLinux
internal import Synchronization

/// A kernel thread. Join it before the process lets go of what its body uses.
package final class OSThread: Sendable {
    private let handle: UInt64
    private let isJoined = Mutex(false)

    /// Starts `body` on a thread of its own. `name` is cut to 15 bytes by the kernel.
    package init(name: String, _ body: sending @escaping () -> Void) throws(SystemError) {
        let box = Unmanaged.passRetained(Body(body))
        var created: UInt64 = 0
        let result = clinux_thread_create(
            String(name.prefix(15)),
            { raw in
                guard let raw else { return }
                Unmanaged<Body>.fromOpaque(raw).takeRetainedValue().run()
            }, box.toOpaque(), &created)
        if result < 0 { box.release() }
        _ = try SystemError.check("start thread \(name)", result)
        handle = created
    }

    /// Waits for the end of the body. Once is enough; again does nothing.
    package func join() {
        let isFirst = isJoined.withLock { joined in
            defer { joined = true }
            return !joined
        }
        if isFirst { _ = clinux_thread_join(handle) }
    }

    /// The calling thread gets the processor when others leave it, from now on.
    package static func giveWay() { _ = clinux_give_way(10) }

    private final class Body {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }
}
