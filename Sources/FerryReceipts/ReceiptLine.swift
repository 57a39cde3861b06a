package import FerryCore
internal import FerryStats

/// The text of receipts: one JSON object a line.
package enum ReceiptLine {
    /// Appends the line of `receipt`. `md5` is the digest over the bytes it is given, nil where there is none to be had.
    package static func append(
        _ receipt: Receipt, app: AppID, masterSecret: String, to text: inout [UInt8], md5: ([UInt8]) -> [UInt8]?
    ) {
        var json = JSONWriter()
        json.beginObject()
        json.member("appid", app.text)
        switch receipt {
        case .ended(let message): append(message, app, masterSecret, &json, md5)
        case .presence(let change): append(change, app, masterSecret, &json, md5)
        }
        json.endObject()
        text.append(contentsOf: json.bytes)
        text.append(0x0a)
    }

    private static func append(
        _ message: EndedMessage, _ app: AppID, _ secret: String, _ json: inout JSONWriter, _ md5: ([UInt8]) -> [UInt8]?
    ) {
        let (cid, task, id) = (
            message.cid.description, message.name.taskID.description, message.name.messageID.description
        )
        json.member("cid", cid)
        json.member("taskid", task)
        json.member("msgid", id)
        json.member("code", Int64(message.reason.receiptCode))
        json.member("desc", "\(message.reason.state)")
        json.member("reason", message.reason.name)
        json.member("recvtime", message.at.milliseconds)
        if !message.name.callback.isEmpty {
            json.member("custom_callback", String(decoding: message.name.callback, as: UTF8.self))
        }
        sign("\(app.text)\(cid)\(task)\(id)\(secret)", &json, md5)
    }

    private static func append(
        _ change: PresenceChange, _ app: AppID, _ secret: String, _ json: inout JSONWriter, _ md5: ([UInt8]) -> [UInt8]?
    ) {
        let (cid, event) = (change.cid.description, change.isOnline ? "online" : "offline")
        json.member("cid", cid)
        json.member("event", event)
        json.member("time", change.at.milliseconds)
        if change.session != 0 { json.member("session", Epoch(change.session).description) }
        sign("\(app.text)\(cid)\(event)\(change.at.milliseconds)\(secret)", &json, md5)
    }

    private static func sign(_ signed: String, _ json: inout JSONWriter, _ md5: ([UInt8]) -> [UInt8]?) {
        guard let digest = md5(Array(signed.utf8)) else { return }
        json.member("sign", Hexadecimal.encode(digest))
    }
}

extension EndReason {
    /// GeTui's code for it: 200 delivered, or handed to APNs; 400 refused by APNs; 401 there is no such device; 402 the device
    /// was not reached; 500 the gateway could not.
    package var receiptCode: Int {
        switch state {
        case .kept, .delivered, .handed: 200
        case .failed: self == .unreadable ? 500 : 400
        case .skipped: 401
        case .expired, .overflowed, .revoked: 402
        }
    }
}
