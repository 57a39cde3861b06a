internal import FerryClientCore
internal import FerryCore
internal import FerryWire

/// A client's record as text, one `key = value` a line, so that a person can read it and a later version can add to it.
enum StateCodec {
    private static let title = "ferry client state 1"

    static func encode(_ record: ClientRecord, appID: AppID) -> [UInt8] {
        var lines = [title, "app = \(appID.text)"]
        if let key = record.installationKey { lines.append("installation-key = \(key.hex)") }
        if let identity = record.identity {
            lines.append("cid = \(identity.cid)")
            lines.append("generation = \(identity.generation)")
            lines.append("secret = \(identity.secret.hex)")
        }
        lines.append("epoch = \(record.epoch)")
        lines.append("last-seq = \(record.lastSeq)")
        return Array((lines.joined(separator: "\n") + "\n").utf8)
    }

    /// Throws a sentence for people when the text is not a state, or another app's.
    static func decode(_ bytes: [UInt8], appID: AppID) throws(DeviceClientError) -> ClientRecord {
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        guard lines.first.map(String.init) == title else {
            throw .store("the client's state does not begin with \"\(title)\"")
        }
        var values: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let equals = line.firstRange(of: " = ") else {
                throw .store("a line of the client's state is not \"key = value\"")
            }
            values[String(line[..<equals.lowerBound])] = String(line[equals.upperBound...])
        }
        guard values["app"] == appID.text else {
            throw .store("the client's state belongs to app \(values["app"] ?? "?"), not \(appID.text)")
        }
        var record = ClientRecord()
        if let text = values["installation-key"] {
            record.installationKey = try require(Bytes32(hex: text), "installation-key")
        }
        if let text = values["cid"] {
            record.identity = DeviceIdentity(
                cid: try require(CID(hex: text), "cid"),
                generation: try require(values["generation"].flatMap { UInt64($0) }, "generation"),
                secret: try require(values["secret"].flatMap { Bytes32(hex: $0) }, "secret"))
        }
        let epoch = values["epoch"].flatMap { $0.utf8.count == 16 ? UInt64($0, radix: 16) : nil }
        record.epoch = Epoch(try require(epoch, "epoch"))
        record.lastSeq = Seq(try require(values["last-seq"].flatMap { UInt64($0) }, "last-seq"))
        return record
    }

    private static func require<Value>(_ value: Value?, _ key: String) throws(DeviceClientError) -> Value {
        guard let value else { throw .store("the client's state has no usable \(key)") }
        return value
    }
}
