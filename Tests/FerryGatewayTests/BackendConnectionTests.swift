@testable internal import FerryGateway
internal import FerryAPI
internal import Testing

struct BackendConnectionTests {
    private func response(_ text: String) -> HTTPResponse { HTTPResponse(status: 200, body: Array(text.utf8)) }

    private func body(_ answer: (bytes: [UInt8], closes: Bool)?) -> String? {
        answer.map { String(decoding: $0.bytes.suffix(1), as: UTF8.self) }
    }

    @Test func `Answers leave in the order of their requests, whenever they come`() {
        let backend = BackendConnection(limits: HTTPLimits())
        let slots = (0..<4).map { _ in backend.open(keepAlive: true, isHead: false) }
        backend.fill(slots[2], response("2"))
        #expect(body(backend.next()) == nil)
        backend.fill(slots[0], response("0"))
        #expect(body(backend.next()) == "0")
        #expect(body(backend.next()) == nil)
        backend.fill(slots[1], response("1"))
        #expect(body(backend.next()) == "1")
        #expect(body(backend.next()) == "2")
        #expect(backend.openAnswers == 1)
        backend.fill(slots[3], response("3"))
        #expect(body(backend.next()) == "3")
        #expect(!backend.hasOpenAnswers)
    }

    @Test func `An answer that nobody waits for is ignored`() {
        let backend = BackendConnection(limits: HTTPLimits())
        backend.fill(0, response("x"))
        let slot = backend.open(keepAlive: true, isHead: false)
        backend.fill(slot, response("a"))
        backend.fill(slot, response("b"))
        backend.fill(slot + 1, response("c"))
        #expect(body(backend.next()) == "a")
        backend.fill(slot, response("d"))
        #expect(body(backend.next()) == nil)
    }

    @Test func `The answer to a request that ends the connection says so`() {
        let backend = BackendConnection(limits: HTTPLimits())
        let slot = backend.open(keepAlive: false, isHead: true)
        backend.fill(slot, response("body"))
        let answer = backend.next()
        #expect(answer?.closes == true)
        let text = String(decoding: answer?.bytes ?? [], as: UTF8.self)
        #expect(text.contains("Connection: close"))
        #expect(text.hasSuffix("\r\n\r\n"))
    }
}
