private import FerryCore
private import FerryIO
@testable private import FerrySimulation
private import FerryWire
internal import Testing

struct LedgerTests {
    /// Two sessions of one device began in one turn, and the link of the later was looked at first. The ledger took the older
    /// for the last, held the device for online within its grace, and called the stub for it, long in the background, a fault.
    @Test func `Of two sessions that began in one turn the one that was not taken over counts`() throws {
        var dice = Dice(seed: 1)
        let clock = VirtualClock()
        let trace = Trace(isTold: false)
        let ledger = Ledger(Scenario(&dice), GatewayClock(clock), trace)
        let later = try Self.link(1)
        let older = try Self.link(2)
        ledger.linkOpened(0)
        ledger.linkOpened(0)
        try ledger.left(Self.welcome, later)
        try ledger.left(Self.welcome, older)
        try ledger.left(.close(CloseFrame(code: .takenOver, retryAfter: 0)), older)
        #expect(ledger.devices[0].current == ObjectIdentifier(later))
        ledger.fed(.background, later)
        #expect(ledger.devices[0].current == nil)
        #expect(ledger.devices[0].graceUntil == .distantPast, "it may be woken at once")
    }

    private static func link(_ number: Int) throws -> Link {
        let (theirs, ours) = try Socket.pair()
        Socket.close(theirs)
        return Link(number: number, device: 0, descriptor: ours, gatewayDescriptor: theirs)
    }

    private static let welcome = GatewayFrame.welcome(
        WelcomeFrame(
            sessionID: SessionID(rawValue: 1), epoch: .none, isResumed: false, serverTime: 0, keepAlive: 60, window: 8,
            windowBytes: 1_000, keptMessages: 0, keptBytes: 0))
}
