internal import FerryCore

extension SinglePush {
    /// Reads the body of a single push; the first thing wrong with it is thrown.
    /// `target` is given where the audience is not a device's name.
    init(_ fields: FieldReader, limits: APILimits, target: CID? = nil) throws(APIError) {
        let requestID = try Self.readRequestID(fields)
        var cid = target
        if cid == nil { cid = try Self.readDevice(fields) }
        guard let cid else { throw .null("audience.cid") }
        let options = try MessageOptions(fields, limits: limits)
        guard options.scheduleTime == nil else {
            throw .invalid("settings.schedule_time", "a push to single devices is sent at once, leave it out")
        }
        self.init(
            requestID: requestID, cid: cid, payload: options.payload, ttl: options.ttl, traits: options.traits,
            alert: options.alert)
    }

    static func readRequestID(_ fields: FieldReader) throws(APIError) -> String {
        guard let requestID = try fields.nonEmptyString("request_id") else { throw .empty("request_id") }
        return try checkRequestID(requestID)
    }

    static func checkRequestID(_ requestID: String) throws(APIError) -> String {
        // Bytes first, so that a long one is not counted through. Every character has one byte that continues no other.
        guard requestID.utf8.count <= 128, (10...32).contains(requestID.utf8.count { $0 & 0xc0 != 0x80 }) else {
            throw .invalid("request_id", "\(Excerpt.quoted(requestID)), must have 10 to 32 characters")
        }
        return requestID
    }

    private static func readDevice(_ fields: FieldReader) throws(APIError) -> CID {
        guard let audience = try fields.object("audience", at: "audience") else { throw .null("audience") }
        let hasAlias = try audience.value("alias") != nil
        guard let list = try audience.value("cid") else {
            guard !hasAlias else {
                throw .invalid("audience.alias", "this call takes audience.cid")
            }
            throw .null("audience.cid")
        }
        guard !hasAlias else { throw .badParameter("choose one of audience.cid and audience.alias") }
        guard var cids = list.elements else { throw .type("audience.cid", mustBe: "an array of exactly 1 string") }
        guard let first = cids.next() else { throw .empty("audience.cid") }
        guard cids.next() == nil else { throw .overLimit("audience.cid", "this call takes exactly 1") }
        guard let found = first.withStringBytes({ Hexadecimal.identifier($0) }) else {
            throw .type("audience.cid", mustBe: "an array of exactly 1 string")
        }
        guard let found else { throw .targetInvalid(first.string ?? "") }
        return CID(found)
    }
}
