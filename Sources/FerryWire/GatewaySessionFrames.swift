package import FerryCore

/// The answer to `foreground`: a new session on the same connection.
package struct ResumedFrame: FrameBody, BitwiseCopyable {
    package static var type: FrameType { .resumed }
    package var sessionID: SessionID
    package var isResumed: Bool
    package var keptMessages: UInt64
    package var keptBytes: UInt64

    package init(sessionID: SessionID, isResumed: Bool, keptMessages: UInt64 = 0, keptBytes: UInt64 = 0) {
        self.sessionID = sessionID
        self.isResumed = isResumed
        self.keptMessages = keptMessages
        self.keptBytes = keptBytes
    }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        var reader = BodyReader(body)
        sessionID = SessionID(rawValue: try reader.uint64())
        isResumed = try reader.byte() & 1 != 0
        keptMessages = try reader.varint()
        keptBytes = try reader.varint()
        try reader.end()
    }

    package func writeBody(to writer: inout ByteWriter) {
        writer.uint64(sessionID.rawValue)
        writer.byte(isResumed ? 1 : 0)
        writer.varint(keptMessages)
        writer.varint(keptBytes)
    }
}

/// The device's token, or its absence, is on disk.
package struct TokenSavedFrame: FrameBody {
    package static var type: FrameType { .tokenSaved }
    /// nil: the token was cleared.
    package var environment: PushEnvironment?

    package init(environment: PushEnvironment?) { self.environment = environment }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        var reader = BodyReader(body)
        let byte = try reader.byte()
        environment = PushEnvironment(rawValue: byte)
        guard byte == 0 || environment != nil else {
            throw WireError(.fieldOutOfRange, "an environment is out of its range")
        }
        try reader.end()
    }

    package func writeBody(to writer: inout ByteWriter) { writer.byte(environment?.rawValue ?? 0) }
}

/// The gateway closes the connection.
package struct CloseFrame: FrameBody {
    package static var type: FrameType { .close }
    package var code: CloseCode
    /// For people: cut to `WireLimits.closeTextBytes` when sent; what is not UTF-8 is replaced when read, since no duty
    /// hangs on it.
    package var text: String
    /// Milliseconds that the device must wait at least; 0 says nothing.
    package var retryAfter: UInt64

    package init(code: CloseCode, text: String? = nil, retryAfter: UInt64 = 0) {
        self.code = code
        self.text = text ?? code.text
        self.retryAfter = retryAfter
    }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        var reader = BodyReader(body)
        guard let number = UInt16(exactly: try reader.varint()) else {
            throw WireError(.fieldOutOfRange, "a close code is out of its range")
        }
        code = CloseCode(rawValue: number)
        text = String(decoding: try reader.string(limit: WireLimits.closeTextBytes), as: UTF8.self)
        retryAfter = try reader.varint()
        try reader.end()
    }

    package func writeBody(to writer: inout ByteWriter) {
        writer.varint(UInt64(code.rawValue))
        writer.string(BoundedText.prefix(of: text, bytes: WireLimits.closeTextBytes))
        writer.varint(retryAfter)
    }
}
