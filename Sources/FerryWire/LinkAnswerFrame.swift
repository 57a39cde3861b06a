package import FerryCore

/// A push that the gateway did not take.
package struct LinkRefusal: Hashable, Sendable {
    package var number: UInt64
    /// The HTTP API's code.
    package var code: UInt64
    /// For people; cut to `WireLimits.linkTextBytes` when sent.
    package var text: String

    package init(number: UInt64, code: UInt64, text: String) {
        self.number = number
        self.code = code
        self.text = text
    }
}

/// Everything up to `upTo` has its answer: what is not in `refusals` was accepted, and is on disk.
package struct LinkAnswerFrame: FrameBody {
    package static var type: FrameType { .linkAnswer }
    package var upTo: UInt64
    /// In rising order of their numbers.
    package var refusals: [LinkRefusal]

    package init(upTo: UInt64, refusals: [LinkRefusal] = []) {
        self.upTo = upTo
        self.refusals = refusals
    }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        var reader = BodyReader(body)
        upTo = try reader.varint()
        var left = try reader.varint()
        var last: UInt64 = 0
        refusals = []
        // Each round takes three bytes or more or ends in an error, so a huge number here costs no more than the body.
        while left > 0 {
            let number = try reader.varint()
            guard number > last, number <= upTo else {
                throw WireError(.fieldOutOfRange, "a refusal's number is out of its range")
            }
            last = number
            let code = try reader.varint()
            let text = String(decoding: try reader.string(limit: WireLimits.linkTextBytes), as: UTF8.self)
            refusals.append(LinkRefusal(number: number, code: code, text: text))
            left -= 1
        }
        try reader.end()
    }

    package func writeBody(to writer: inout ByteWriter) {
        writer.varint(upTo)
        writer.varint(UInt64(refusals.count))
        for refusal in refusals {
            writer.varint(refusal.number)
            writer.varint(refusal.code)
            writer.string(BoundedText.prefix(of: refusal.text, bytes: WireLimits.linkTextBytes))
        }
    }
}
