internal import CLinux

/// TERM, INT and USR1 as something to wait for. Make it before the first thread, so that every thread has them blocked.
package struct ProcessSignals: Sendable {
    private let descriptor: Int32

    package init() throws(SystemError) {
        clinux_ignore_sigpipe()
        descriptor = try SystemError.check("block signals", clinux_block_signals())
    }

    /// Waits for one of them and answers its number.
    package func wait() -> Int32 { clinux_wait_signal(descriptor) }

    /// Waits up to `milliseconds`; whether a signal came.
    package func wait(milliseconds: Int32) -> Bool { clinux_poll_signal(descriptor, milliseconds) > 0 }

    /// Raises the soft limit of descriptors to the hard one and answers what it is then.
    package static func raiseDescriptorLimit() -> Int { max(0, Int(clinux_raise_descriptor_limit())) }
}
