@testable internal import FerryGateway
private import FerryRouting
private import FerrySession
internal import Testing

/// There is one of each for each idle connection, so they must not grow unnoticed: whoever needs a field looks first for one
/// that an idle device can do without.
struct MemoryLayoutTests {
    @Test func `A connection takes 72 bytes`() {
        #expect(MemoryLayout<SessionStateMachine>.size <= 28)
        #expect(MemoryLayout<Connection>.stride <= 72)
    }

    @Test func `A device takes 112 bytes, a third of them its machine`() {
        #expect(MemoryLayout<DeviceStateMachine>.size <= 32)
        #expect(MemoryLayout<DeviceEntry>.stride <= 112)
    }
}
