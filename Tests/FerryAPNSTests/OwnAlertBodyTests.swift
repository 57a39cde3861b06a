private import FerryAPNS
private import FerryCore
internal import Testing

struct OwnAlertBodyTests {
    private func named(_ body: String, badge: Int32? = nil) -> String {
        String(decoding: OwnAlertBody.named(Array(body.utf8), "t:m:c", badge: badge), as: UTF8.self)
    }

    @Test func `an alert gets the keys by which GeTui's SDK knows it`() {
        #expect(named(#"{"aps":{"alert":{}}}"#) == #"{"aps":{"alert":{}},"_ge_":"1","_gmid_":"t:m:c"}"#)
        #expect(named(#"{"aps":{},"_gmid_":"x"}"#) == #"{"aps":{},"_gmid_":"x"}"#)
    }

    @Test func `a badge stands first in aps`() {
        let keys = #","_ge_":"1","_gmid_":"t:m:c"}"#
        #expect(named(#"{"aps":{"sound":"s"}}"#, badge: 7) == #"{"aps":{"badge":7,"sound":"s"}"# + keys)
        #expect(named(#"{"aps":{}}"#, badge: 0) == #"{"aps":{"badge":0}"# + keys)
        #expect(named(#"{ "aps":{}}"#, badge: 7) == #"{ "aps":{}"# + keys)
    }

    @Test func `what has no room for the keys goes without them`() {
        let frame = #"{"aps":{"x":""}}"#.utf8.count
        let keys = #","_ge_":"1","_gmid_":"t:m:c""#.utf8.count
        for (room, fits) in [(Limits.apnsPayloadBytes - frame - keys, true), (Limits.apnsPayloadBytes - frame, false)] {
            let body = #"{"aps":{"x":"\#(String(repeating: "x", count: room))"}}"#
            let sent = named(body)
            #expect(sent.contains("_gmid_") == fits)
            #expect(sent.utf8.count == Limits.apnsPayloadBytes)
        }
    }

    @Test func `each kind of push has its topic, type and priority`() throws {
        let composer = StubComposer(title: nil, text: "new")
        let token = try #require(PushToken(environment: .sandbox, bytes: [1]))
        let expected: [(AlertKind, Bool, [String])] = [
            (.notify, false, ["app", "alert", "10"]), (.notify, true, ["app", "background", "5"]),
            (.voip, false, ["app.voip", "voip", "10"]),
            (.liveActivity, false, ["app.push-type.liveactivity", "liveactivity", "10"]),
        ]
        for (kind, isBackground, headers) in expected {
            let stub = composer.own(
                topic: "app", token: token, body: [], collapseID: nil, kind: kind, isBackground: isBackground,
                expiresAt: nil, identity: Identifier128(high: 1, low: 2))
            #expect(stub.headers.prefix(3).map(\.value) == headers)
        }
    }
}
