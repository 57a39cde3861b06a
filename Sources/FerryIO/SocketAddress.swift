/// An IPv4 address and port, as `HOST:PORT` on the command line.
package struct SocketAddress: Hashable, Sendable, BitwiseCopyable, CustomStringConvertible {
    /// In host byte order.
    package let address: UInt32
    package var port: UInt16

    package init(address: UInt32, port: UInt16) {
        self.address = address
        self.port = port
    }

    /// Reads `127.0.0.1:7700`, `localhost:7700` or `:7700` (all interfaces); nil for anything else.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let port: UInt16 = Self.number(parts[1]), let address = Self.parse(String(parts[0]))
        else {
            return nil
        }
        self.init(address: address, port: port)
    }

    package static let loopback: UInt32 = 0x7f00_0001

    /// Within 127.0.0.0/8.
    package var isLoopback: Bool { address >> 24 == 127 }

    package var host: String {
        [24, 16, 8, 0].map { (shift: UInt32) in String(address >> shift & 255) }.joined(separator: ".")
    }

    package var description: String { "\(host):\(port)" }

    private static func parse(_ host: String) -> UInt32? {
        if host == "localhost" { return loopback }
        if host.isEmpty { return 0 }
        let octets: [UInt8?] = host.split(separator: ".", omittingEmptySubsequences: false).map { number($0) }
        guard octets.count == 4 else { return nil }
        var address: UInt32 = 0
        for octet in octets {
            guard let octet else { return nil }
            address = address << 8 | UInt32(octet)
        }
        return address
    }

    /// Digits alone, without leading zeros, which other programs read as octal.
    private static func number<Number: FixedWidthInteger>(_ text: Substring) -> Number? {
        guard text.utf8.allSatisfy({ (48...57).contains($0) }), text == "0" || text.first != "0" else { return nil }
        return Number(text)
    }
}
