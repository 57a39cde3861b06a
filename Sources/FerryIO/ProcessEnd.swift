internal import CLinux

/// The end of the process.
package enum ProcessEnd {
    /// Now, without a look at what other threads wait for, and without what is usually run at an exit: that may wait too.
    package static func now(status: Int32) -> Never { clinux_exit_now(status) }
}
