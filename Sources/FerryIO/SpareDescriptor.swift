internal import CLinux

/// A descriptor held back so that, when all others are taken, one waiting connection at a time can still be accepted and
/// refused instead of waking the poller for ever.
package enum SpareDescriptor {
    /// -1 when even this one cannot be had.
    package static func open() -> Int32 { max(-1, clinux_open_read("/dev/null")) }

    package static func close(_ descriptor: Int32) {
        if descriptor >= 0 { _ = clinux_close(descriptor) }
    }
}
