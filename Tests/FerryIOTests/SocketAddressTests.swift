private import FerryIO
internal import Testing

struct SocketAddressTests {
    @Test(arguments: [
        ("127.0.0.1:7700", "127.0.0.1:7700"), ("localhost:1", "127.0.0.1:1"), (":0", "0.0.0.0:0"),
        ("255.255.255.255:65535", "255.255.255.255:65535"), ("10.0.20.3:80", "10.0.20.3:80"),
    ])
    func `An address is a host and a port`(_ text: String, _ description: String) {
        #expect(SocketAddress(text)?.description == description)
        #expect(SocketAddress(description)?.description == description)
    }

    /// A sign was taken for part of a number, and a leading zero, which elsewhere means octal, for nothing.
    @Test(arguments: [
        "", "7700", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:+1", "127.0.0:1",
        "127.0.0.1.1:1", "256.0.0.1:1", "1.2.3.:1", "+1.2.3.4:1", "-0.2.3.4:1", "010.0.0.1:1", "1.2.3.4:1:2", "::1:80",
        "example.org:80", " 1.2.3.4:5", "1.2.3.4:5 ", "1.2.3.4: 5", "1.2.3.４:5", "1.2.3.4:007",
    ])
    func `Anything else is no address`(_ text: String) {
        #expect(SocketAddress(text) == nil)
    }

    @Test func `Loopback is the whole of 127.0.0.0 and nothing beside it`() {
        #expect(SocketAddress("127.255.255.255:1")?.isLoopback == true)
        #expect(SocketAddress("126.255.255.255:1")?.isLoopback == false)
        #expect(SocketAddress("128.0.0.0:1")?.isLoopback == false)
        #expect(SocketAddress(":1")?.isLoopback == false)
    }
}
