internal import FerryCore

/// The sender's own alert with what is known only when it is sent.
package enum OwnAlertBody {
    private static let start = Array(#"{"aps":{"#.utf8)

    /// `body` with GeTui's keys, by which its SDK knows a notification and counts it (`_ge_`, and `_gmid_` with `name`), and
    /// with `badge` in its `aps`. The keys are left out where they are there already, or where they would make it too long;
    /// the badge, where the body does not begin with its `aps`.
    package static func named(_ body: [UInt8], _ name: String, badge: Int32?) -> [UInt8] {
        var body = body
        if let badge, body.starts(with: start) {
            let isAlone = body.dropFirst(start.count).first == UInt8(ascii: "}")
            body.insert(contentsOf: Array("\"badge\":\(badge)\(isAlone ? "" : ",")".utf8), at: start.count)
        }
        guard body.last == UInt8(ascii: "}"), body.firstRange(of: Array(#""_gmid_""#.utf8)) == nil else { return body }
        let keys = Array(",\"_ge_\":\"1\",\"_gmid_\":\"\(name)\"}".utf8)
        guard body.count - 1 + keys.count <= Limits.apnsPayloadBytes else { return body }
        body.removeLast()
        body.append(contentsOf: keys)
        return body
    }
}
