internal import FerryGateway
internal import FerryIO
internal import Foundation

/// The gateway's identity key: 64 hex digits in a file of mode 0600, made at the first start.
enum IdentityFile {
    /// `folder` is one that was in use already, if it was: all its devices have secrets that another key cannot make.
    static func open(_ path: String, forUsed folder: String?) throws -> Identity {
        if FileManager.default.fileExists(atPath: path) {
            guard let data = FileManager.default.contents(atPath: path) else {
                throw SettingsError("identity file \(path) cannot be read")
            }
            let text = String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
            guard let key = SecretFile.bytes(hex: text), let identity = Identity(key: key) else {
                throw SettingsError(
                    "identity file \(path) does not hold 64 hex digits; restore it from its backup "
                        + "(with another key every device must register anew)")
            }
            return identity
        }
        if let folder {
            throw SettingsError(
                "identity file \(path) is missing, and the devices of the data folder \(folder) need it: restore it from "
                    + "its backup, or put 64 random hex digits there to have every device register anew")
        }
        let (identity, key) = try fresh()
        guard try SecretFile.create(path, SecretFile.hex(key) + "\n") else { return try open(path, forUsed: folder) }
        EventLog.write(.info, "identity key made; keep a copy apart from the data", ["file": path])
        return identity
    }

    static func fresh() throws -> (identity: Identity, key: [UInt8]) {
        let key = Cryptography.random(Identity.keyBytes)
        guard let identity = Identity(key: key) else { throw SettingsError("no identity key could be made") }
        return (identity, key)
    }
}
