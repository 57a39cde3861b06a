internal import FerryCore
internal import Foundation

/// The protocol's data files, found by walking up from this file.
enum ProtocolSpec {
    static let folder: URL? = {
        var place = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        while place.path != "/" {
            let candidate = place.appendingPathComponent("protocol-spec")
            if FileManager.default.fileExists(atPath: candidate.appendingPathComponent("vectors").path) {
                return candidate
            }
            place.deleteLastPathComponent()
        }
        return nil
    }()

    static func json(_ path: String) throws -> [String: Any] {
        guard let folder else { throw Samples.Missing() }
        let data = try Data(contentsOf: folder.appendingPathComponent(path))
        return try Samples.unwrap(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    }

    /// Every case of every vector file but the proofs, with its file's kind.
    static func vectors() throws -> [(kind: String, fields: [String: Any])] {
        guard let folder else { return [] }
        let files = try FileManager.default.contentsOfDirectory(
            atPath: folder.appendingPathComponent("vectors").path)
        return try files.filter { $0.hasSuffix(".json") && $0 != "proofs.json" }.sorted().flatMap { file in
            let object = try json("vectors/" + file)
            let cases = try Samples.unwrap(object["cases"] as? [[String: Any]])
            return cases.map { (file, $0) }
        }
    }

    /// Hex digits, or `{"hexParts": [[digits, times], …]}`.
    static func bytes(_ value: Any?) throws -> [UInt8] {
        if let text = value as? String { return try Samples.unwrap(Hexadecimal.decode(text)) }
        let object = try Samples.unwrap(value as? [String: Any])
        let parts = try Samples.unwrap(object["hexParts"] as? [[Any]])
        return try parts.flatMap { part -> [UInt8] in
            let piece = try Samples.unwrap(Hexadecimal.decode(try Samples.unwrap(part.first as? String)))
            let times = try Samples.unwrap(part.last as? Int)
            return Array(repeatElement(piece, count: times).joined())
        }
    }
}
