package import FerryCore

/// What a device says about its APNs token.
package enum TokenChange: Hashable, Sendable {
    case clear
    case set(PushToken)

    /// 0 for `clear`, else the environment's number, as frames carry it.
    package var environmentByte: UInt8 {
        switch self {
        case .clear: 0
        case .set(let token): token.environment.rawValue
        }
    }

    /// The token; empty for `clear`.
    package var tokenBytes: [UInt8] {
        switch self {
        case .clear: []
        case .set(let token): token.bytes
        }
    }

    init(environment: UInt8, bytes: UnsafeRawBufferPointer) throws(WireError) {
        if environment == 0 && bytes.isEmpty {
            self = .clear
        } else if let environment = PushEnvironment(rawValue: environment),
            let token = PushToken(environment: environment, bytes: Array(bytes))
        {
            self = .set(token)
        } else {
            throw WireError(.fieldOutOfRange, "a device token's environment or size is out of its range")
        }
    }
}

/// The extensions that `login` and `register` may carry.
package struct AttachExtensions: Hashable, Sendable {
    /// Tag 1.
    package var deviceToken: TokenChange?
    /// Tag 2: name and version of the client's software, at most `WireLimits.clientInfoBytes`; logged only, so what is
    /// not UTF-8 in it is replaced.
    package var clientInfo: String?

    package init(deviceToken: TokenChange? = nil, clientInfo: String? = nil) {
        self.deviceToken = deviceToken
        self.clientInfo = clientInfo
    }

    /// Of a repeated tag the first counts.
    init(reading reader: inout BodyReader) throws(WireError) {
        var token: TokenChange?
        var info: String?
        try reader.extensions { (tag, bytes) throws(WireError) in
            switch tag {
            case 1 where token == nil:
                guard let environment = bytes.first else { throw .badExtension }
                token = try TokenChange(environment: environment, bytes: UnsafeRawBufferPointer(rebasing: bytes[1...]))
            case 2 where info == nil:
                guard bytes.count <= WireLimits.clientInfoBytes else { throw .longString }
                info = String(decoding: bytes, as: UTF8.self)
            default: break
            }
        }
        self.init(deviceToken: token, clientInfo: info)
    }

    func write(to writer: inout ByteWriter) {
        if let deviceToken {
            writer.varint(1)
            writer.string([deviceToken.environmentByte] + deviceToken.tokenBytes)
        }
        if let clientInfo {
            writer.varint(2)
            writer.string(BoundedText.prefix(of: clientInfo, bytes: WireLimits.clientInfoBytes))
        }
    }
}

/// Text cut to what its field holds.
enum BoundedText {
    /// The longest prefix of whole characters that takes at most `bytes` bytes of UTF-8.
    static func prefix(of text: String, bytes limit: Int) -> [UInt8] {
        if text.utf8.count <= limit { return Array(text.utf8) }
        var result: [UInt8] = []
        for scalar in text.unicodeScalars {
            let encoded = Array(String(scalar).utf8)
            if result.count + encoded.count > limit { break }
            result += encoded
        }
        return result
    }
}
