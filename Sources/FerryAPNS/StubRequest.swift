package import FerryCore

/// One wake-up as the exact request that APNs gets (Apple, "Sending notification requests to APNs").
package struct StubRequest: Equatable, Sendable {
    package var environment: PushEnvironment
    /// The device token's bytes; the path spells them in hex.
    package var token: [UInt8]
    /// In the order in which they are sent; names in lower case.
    package var headers: [Header]
    /// The JSON body, at most `Limits.apnsPayloadBytes`.
    package var body: [UInt8]

    package struct Header: Equatable, Sendable {
        package var name: String
        package var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package init(environment: PushEnvironment, token: [UInt8], headers: [Header], body: [UInt8]) {
        self.environment = environment
        self.token = token
        self.headers = headers
        self.body = body
    }

    package var path: String { "/3/device/\(Hexadecimal.encode(token))" }

    package var host: String {
        switch environment {
        case .sandbox: "api.sandbox.push.apple.com"
        case .production: "api.push.apple.com"
        }
    }
}

/// Makes stubs. The message's payload never comes near it (P5).
package struct StubComposer: Sendable {
    /// What the owner of an offline device reads when the sender gave no alert.
    package var title: String?
    package var text: String

    package init(title: String?, text: String) {
        self.title = title
        self.text = text
    }

    /// The default stub: one visible per device, since all share a collapse id; its badge counts what is kept.
    /// `identity` is the same for the same stub after a restart, so that APNs and its logs can tell a repeat.
    package func standard(
        topic: String, token: PushToken, cid: CID, badge: Int, expiresAt: Instant, identity: Identifier128
    ) -> StubRequest {
        var body = JSONWriter()
        body.beginObject()
        body.name("aps")
        body.beginObject()
        body.name("alert")
        body.beginObject()
        if let title { body.member("title", title) }
        body.member("body", text)
        body.endObject()
        body.member("badge", Int64(badge))
        body.member("sound", "default")
        body.endObject()
        // What GeTui's iOS SDK looks for to tell its own notifications from others.
        body.member("_ge_", "1")
        body.endObject()
        return request(
            topic: topic, token: token, type: "alert", priority: 10, expiration: expiresAt.milliseconds / 1000,
            collapseID: "ferry-\(cid)", identity: identity, body: body.bytes)
    }

    /// The sender's own alert; `isBackground` is of a `notify` alone. `expiresAt` nil asks APNs for one try only.
    package func own(
        topic: String, token: PushToken, body: [UInt8], collapseID: String?, kind: AlertKind = .notify,
        isBackground: Bool,
        expiresAt: Instant?, identity: Identifier128
    ) -> StubRequest {
        let (suffix, type, priority) =
            switch kind {
            case .notify: ("", isBackground ? "background" : "alert", isBackground ? 5 : 10)
            case .voip: (".voip", "voip", 10)
            case .liveActivity: (".push-type.liveactivity", "liveactivity", 10)
            }
        return request(
            topic: topic + suffix, token: token, type: type, priority: priority,
            expiration: expiresAt.map { $0.milliseconds / 1000 } ?? 0, collapseID: collapseID, identity: identity,
            body: body)
    }

    private func request(
        topic: String, token: PushToken, type: String, priority: Int, expiration: Int64, collapseID: String?,
        identity: Identifier128, body: [UInt8]
    ) -> StubRequest {
        var headers = [
            StubRequest.Header(name: "apns-topic", value: topic),
            StubRequest.Header(name: "apns-push-type", value: type),
            StubRequest.Header(name: "apns-priority", value: String(priority)),
            StubRequest.Header(name: "apns-expiration", value: String(expiration)),
            StubRequest.Header(name: "apns-id", value: Self.uuid(identity)),
        ]
        if let collapseID { headers.append(StubRequest.Header(name: "apns-collapse-id", value: collapseID)) }
        return StubRequest(environment: token.environment, token: token.bytes, headers: headers, body: body)
    }

    /// Canonical lower-case 8-4-4-4-12, as `apns-id` wants it.
    static func uuid(_ identity: Identifier128) -> String {
        let hex = Array(identity.hex)
        return [hex[0..<8], hex[8..<12], hex[12..<16], hex[16..<20], hex[20..<32]].map { String($0) }
            .joined(separator: "-")
    }
}
