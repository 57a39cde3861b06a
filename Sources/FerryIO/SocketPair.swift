internal import CLinux

extension Socket {
    /// Two non-blocking stream sockets that are connected with each other, for what is tested or simulated without a network.
    /// The caller closes each once.
    package static func pair() throws(SystemError) -> (Int32, Int32) {
        var descriptors: [Int32] = [-1, -1]
        _ = try SystemError.check("make a pair of sockets", clinux_socketpair(&descriptors))
        return (descriptors[0], descriptors[1])
    }
}
