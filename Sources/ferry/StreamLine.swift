internal import FerryClient
internal import FerryCore
internal import FerryIO
internal import Foundation

/// One line of JSON as a message.
enum StreamLine {
    struct Problem: Error { let sentence: String }

    private static let names: Set<String> = ["cid", "payload", "payloadBase64", "ttl", "id", "alert", "collapseId"]

    static func message(_ line: Data, number: UInt64) throws(Problem) -> LinkMessage {
        guard let object = (try? JSONSerialization.jsonObject(with: line)) as? [String: Any] else {
            throw Problem(sentence: "this is no JSON object")
        }
        if let strange = object.keys.filter({ !names.contains($0) }).min() {
            throw Problem(sentence: "there is no \"\(strange)\"; there are \(names.sorted().joined(separator: ", "))")
        }
        guard let cid = (object["cid"] as? String).flatMap({ CID(hex: $0) }) else {
            throw Problem(sentence: "cid must be 32 hex digits")
        }
        var id = Identifier128(bytes: Cryptography.random(16)) ?? Identifier128(high: 0, low: 0)
        if let given = object["id"] {
            guard let named = (given as? String).flatMap({ Identifier128(hex: $0) }) else {
                throw Problem(sentence: "id must be 32 hex digits")
            }
            id = named
        }
        var message = LinkMessage(tag: number, id: id, cid: cid, payload: try payload(object))
        guard message.payload.count <= Limits.payloadBytes else {
            throw Problem(sentence: "the payload has \(message.payload.count) bytes, at most \(Limits.payloadBytes)")
        }
        if let given = object["ttl"] {
            // As in the HTTP call: −1 and 0 are live only.
            guard let ttl = given as? Int, (-1...Int(Limits.timeToLiveMilliseconds)).contains(ttl) else {
                throw Problem(sentence: "ttl must be -1 to \(Limits.timeToLiveMilliseconds) milliseconds")
            }
            message.isLiveOnly = ttl <= 0
            message.ttl = ttl > 0 ? UInt64(ttl) : nil
        }
        if let given = object["alert"] {
            guard given is [String: Any],
                let body = try? JSONSerialization.data(withJSONObject: given, options: [.sortedKeys]),
                body.count <= Limits.apnsPayloadBytes
            else { throw Problem(sentence: "alert must be a JSON object of at most \(Limits.apnsPayloadBytes) bytes") }
            message.alert = Array(body)
        }
        if let given = object["collapseId"] {
            guard let text = given as? String, text.utf8.count <= Limits.collapseIDBytes else {
                throw Problem(sentence: "collapseId must be a text of at most \(Limits.collapseIDBytes) bytes")
            }
            message.collapseID = text
        }
        return message
    }

    private static func payload(_ object: [String: Any]) throws(Problem) -> [UInt8] {
        switch (object["payload"], object["payloadBase64"]) {
        case (let text as String, nil): return Array(text.utf8)
        case (nil, let text as String):
            guard let data = Data(base64Encoded: text) else { throw Problem(sentence: "payloadBase64 is not base64") }
            return Array(data)
        default: throw Problem(sentence: "give payload or payloadBase64, a text")
        }
    }
}
