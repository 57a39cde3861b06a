internal import FerryCore
internal import FerryIO

/// Small files with secrets: mode 0600, on disk whole or not at all.
enum SecretFile {
    static func create(_ path: String, _ text: String) throws {
        do {
            try FileReplacement.replace(path, with: Array(text.utf8))
        } catch {
            throw SettingsError("\(path) cannot be written: \(error)")
        }
    }

    static func hex(_ bytes: [UInt8]) -> String { Hexadecimal.encode(bytes) }
    static func bytes(hex: String) -> [UInt8]? { Hexadecimal.decode(hex) }
}
