internal import CLinux

extension Socket {
    /// Two non-blocking stream sockets that are connected with each other, for what is tested or simulated without a network.
    /// The caller closes each once.
    /// - Parameter sendBuffer: bytes, about, that the first takes while the second does not read; nil: as many as is usual.
    package static func pair(sendBuffer: Int32? = nil) throws(SystemError) -> (Int32, Int32) {
        var descriptors: [Int32] = [-1, -1]
        _ = try SystemError.check("make a pair of sockets", clinux_socketpair(&descriptors))
        if let sendBuffer { _ = clinux_set_send_buffer(descriptors[0], sendBuffer) }
        return (descriptors[0], descriptors[1])
    }
}
