internal import FerryAPI
internal import Testing

/// A push that came over a link, checked by the same rules as an HTTP call.
struct LinkPushTests {
    private let parser = APIRequestParser(limits: APILimits())

    private func push(
        payload: [UInt8] = [1], ttl: UInt64 = 0, isLiveOnly: Bool = false, alert: String = "",
        collapseID: String = "", isBackground: Bool = false
    ) -> Result<LinkPushTerms, APIError> {
        payload.withUnsafeBytes { payload in
            Array(alert.utf8).withUnsafeBytes { alert in
                Array(collapseID.utf8).withUnsafeBytes { collapseID in
                    parser.linkPush(
                        payload: payload, ttl: ttl, isLiveOnly: isLiveOnly, alert: alert, collapseID: collapseID,
                        isBackground: isBackground)
                }
            }
        }
    }

    private func fault(_ result: Result<LinkPushTerms, APIError>) -> String? {
        guard case .failure(let error) = result, error.code == 20_001 else { return nil }
        return error.message
    }

    @Test func `a push says what an HTTP call says`() throws {
        #expect(try push().get().ttl == .milliseconds(7_200_000))
        #expect(try push(ttl: 5).get().ttl == .milliseconds(5))
        #expect(try push(ttl: 259_200_000).get().ttl == .milliseconds(259_200_000))
        #expect(try push(ttl: .max, isLiveOnly: true).get().ttl == .liveOnly)
        // Bytes, not characters: HTTP would count these as too many.
        let payload = [UInt8](repeating: 0xff, count: 65_536)
        #expect(throws: Never.self) { try push(payload: payload).get() }
        let alert = #"{"aps":{"alert":"x"},"any":[1,2]}"#
        let whole = try push(alert: alert, collapseID: "news", isBackground: false).get().alert
        #expect(whole == APNsAlert(payload: Array(alert.utf8), collapseID: "news", pushType: .alert))
        #expect(try push(alert: alert, isBackground: true).get().alert?.pushType == .background)
        #expect(try push(isBackground: true).get().alert == nil)
    }

    @Test func `what is not in order is refused by name`() {
        #expect(fault(push(payload: [])) == "payload can not be empty")
        #expect(fault(push(ttl: 259_200_001))?.hasPrefix("ttl is invalid: 259200001") == true)
        #expect(fault(push(ttl: .max))?.hasPrefix("ttl is invalid") == true)
        for alert in ["[]", "7", "{}", #"{"aps":1}"#, #"{"aps":{},"aps":{}}"#] {
            #expect(
                fault(push(alert: alert)) == "alert type error: must be a JSON object with an object aps", "\(alert)")
        }
        #expect(fault(push(alert: "{"))?.hasPrefix("alert is invalid: it is not JSON") == true)
        #expect(fault(push(collapseID: "x")) == "alert can not be empty")
        for id in [" x", "x ", "a\u{7f}", "é", String(repeating: "x", count: 65)] {
            #expect(fault(push(alert: #"{"aps":{}}"#, collapseID: id))?.hasPrefix("collapseId") == true, "\(id)")
        }
    }
}
