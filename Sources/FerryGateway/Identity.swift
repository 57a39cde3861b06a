package import FerryCore
internal import FerryIO
package import FerryWire

/// What the gateway's identity key makes: device ids, device secrets and API tokens. None of them is stored, so a stolen data
/// folder or backup holds no secret of any device.
package struct Identity: Sendable {
    /// 32 bytes; kept outside the data folder.
    private let key: [UInt8]
    /// What HKDF makes of the key before it looks at the purpose: the same for all devices, and half of the work.
    private let extracted: [UInt8]

    package static let keyBytes = 32

    /// nil unless `key` has `keyBytes` bytes.
    package init?(key: [UInt8]) {
        guard key.count == Self.keyBytes else { return nil }
        self.key = key
        extracted = Cryptography.hkdfSHA256Extract(key: key)
    }

    /// The cid of the installation with this key. The same key leads to the same cid, which is what makes registration
    /// idempotent; nobody without the identity key can tell one from the other.
    package func cid(app: AppID, installationKey: Bytes32) -> CID {
        var info = label("ferry/1 cid", app)
        info.raw(installationKey.bytes)
        return CID(identifier(of: info.bytes))
    }

    /// The first half of a digest under the key. Its length is SHA-256's, whatever `info` holds: no input reaches the trap.
    private func identifier(of info: [UInt8]) -> Identifier128 {
        let digest = Cryptography.hmacSHA256(key: key, info)
        guard let value = Identifier128(bytes: digest) else { preconditionFailure("SHA-256 has 32 bytes") }
        return value
    }

    /// The secret that a device proves itself with.
    package func deviceSecret(app: AppID, cid: CID, generation: UInt64) -> Bytes32 {
        var info = label("ferry/1 device secret", app)
        info.identifier(cid.value)
        info.uint64(generation)
        guard let secret = Bytes32(Cryptography.hkdfSHA256Expand(extracted: extracted, info: info.bytes)) else {
            preconditionFailure("HKDF made 32 bytes")
        }
        return secret
    }

    /// What the ids of an app's pushes over links are mixed with, so that no app can meet another's on purpose.
    package func linkSalt(app: AppID) -> Identifier128 {
        identifier(of: label("ferry/1 link", app).bytes)
    }

    /// What the keys that repeats over links are known by are mixed with. Nothing that leaves the gateway tells of it.
    package func linkKeySalt(app: AppID) -> Identifier128 {
        identifier(of: label("ferry/1 link key", app).bytes)
    }

    /// A token for the app's backend, good until `expiresAt`. It carries its own proof, so it outlives a restart; a new
    /// master secret ends all of them.
    /// - Parameter nonce: 8 fresh random bytes.
    package func apiToken(app: App, expiresAt: Instant, nonce: [UInt8]) -> String {
        var token = ByteWriter()
        token.uint64(UInt64(bitPattern: expiresAt.milliseconds))
        token.raw(nonce)
        token.raw(proof(of: token.bytes, app: app))
        return Hexadecimal.encode(token.bytes)
    }

    /// When the token ends; nil for one that this gateway did not make for this app.
    package func expiry(ofAPIToken text: String, app: App) -> Instant? {
        guard text.utf8.count == 64, let bytes = Hexadecimal.decode(text), bytes.count == 32 else { return nil }
        let signed = Array(bytes[..<16])
        guard Cryptography.isEqual(proof(of: signed, app: app), Array(bytes[16...])) else { return nil }
        let milliseconds = signed[..<8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Instant(milliseconds: Int64(bitPattern: milliseconds))
    }

    private func proof(of bytes: [UInt8], app: App) -> [UInt8] {
        var info = label("ferry/1 api token", app.id)
        info.string(app.masterSecret.utf8)
        info.raw(bytes)
        return Array(Cryptography.hmacSHA256(key: key, info.bytes)[..<16])
    }

    private func label(_ purpose: StaticString, _ app: AppID) -> ByteWriter {
        var writer = ByteWriter()
        purpose.withUTF8Buffer { writer.string($0) }
        writer.string(app.text.utf8)
        return writer
    }
}
