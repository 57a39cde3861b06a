internal import FerryCore
internal import FerryIO

/// Small files with secrets: mode 0600, on disk whole or not at all.
enum SecretFile {
    /// Whether this call made the file; false when another start did so first.
    static func create(_ path: String, _ text: String) throws -> Bool {
        do {
            return try FileReplacement.create(path, with: Array(text.utf8))
        } catch {
            throw SettingsError("\(path) cannot be written: \(error)")
        }
    }

    static func hex(_ bytes: [UInt8]) -> String { Hexadecimal.encode(bytes) }
    static func bytes(hex: String) -> [UInt8]? { Hexadecimal.decode(hex) }
}
