internal import FerryGateway
internal import Foundation

/// The configuration file: one flat JSON object.
struct ConfigurationFile {
    private let path: String
    private var values: [String: ConfigurationValue] = [:]

    /// No path, no values.
    init(path: String?) throws {
        self.path = path ?? ""
        guard let path else { return }
        guard let data = FileManager.default.contents(atPath: path) else {
            throw SettingsError("configuration file \(path) cannot be read")
        }
        let object: Any
        do {
            object = try JSONSerialization.jsonObject(with: data)
        } catch {
            throw SettingsError("configuration file \(path) is not JSON")
        }
        guard let members = object as? [String: Any] else {
            throw SettingsError("configuration file \(path) must hold one JSON object")
        }
        values = members.mapValues(Self.value)
    }

    /// Says everything that is wrong at once.
    func apply(to configuration: inout GatewayConfiguration) throws {
        var problems: [String] = []
        let known = ConfigurationKey.all.map(\.name) + ServeSettings.placeKeys.map(\.name)
        for (name, value) in values.sorted(by: { $0.key < $1.key }) {
            if let key = ConfigurationKey.all.first(where: { $0.name == name }) {
                if let problem = key.apply(value, &configuration) { problems.append(problem) }
            } else if !known.contains(name) {
                let nearest = known.min { ArgumentParser.distance($0, name) < ArgumentParser.distance($1, name) }
                let hint = nearest.map { ArgumentParser.distance($0, name) <= 4 ? "; did you mean \($0)?" : "" } ?? ""
                problems.append("\(name) is not a key\(hint)")
            }
        }
        guard problems.isEmpty else { throw SettingsError(["configuration file \(path)"] + problems) }
    }

    func text(_ name: String) throws -> String? {
        switch values[name] {
        case nil: return nil
        case .text(let text): return text
        default: throw SettingsError("configuration file \(path): \(name) must be a text")
        }
    }

    func flag(_ name: String) throws -> Bool? {
        switch values[name] {
        case nil: return nil
        case .flag(let flag): return flag
        default: throw SettingsError("configuration file \(path): \(name) must be true or false")
        }
    }

    private static func value(_ any: Any) -> ConfigurationValue {
        if let text = any as? String { return .text(text) }
        guard let number = any as? NSNumber else { return .other }
        if isBoolean(number) { return .flag(number.boolValue) }
        guard let integer = Int64(exactly: number.doubleValue) else { return .other }
        return .integer(integer)
    }

    /// On Linux a JSON boolean is an `NSNumber` of type `c`, as a signed byte would be; JSON has no signed bytes.
    private static func isBoolean(_ number: NSNumber) -> Bool {
        String(cString: number.objCType) == "c" || String(cString: number.objCType) == "B"
    }
}
