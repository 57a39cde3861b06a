internal import FerryCore
internal import FerryGateway
internal import FerryIO
internal import FerryReceipts
internal import Foundation

/// The apps of a gateway: a JSON array, each with `appId`, `appKey`, `appSecret`, `masterSecret`, and where wanted `name`
/// `apns` (`topic`, `environment`) and `receipts` (`url`, `presence`, `retryOn5xx`, `caFile`).
struct AppsFile {
    let apps: [App]
    /// It was made just now.
    let isNew: Bool

    private struct Entry: Codable {
        struct APNs: Codable {
            var topic: String?
            var environment: String?
        }

        var appId: String
        var appKey: String
        var appSecret: String
        var masterSecret: String
        var name: String?
        var apns: APNs?
        var receipts: Receipts?
    }

    private struct Receipts: Codable {
        var url: String
        var presence: Bool?
        var retryOn5xx: Bool?
        var caFile: String?

        var target: ReceiptTarget {
            ReceiptTarget(
                url: url, tellsPresence: presence ?? false, retriesServerErrors: retryOn5xx ?? true,
                authorityFile: caFile)
        }
    }

    init(apps: [App], isNew: Bool) {
        self.apps = apps
        self.isNew = isNew
    }

    /// Reads the file; makes one with a first app where there is none and `makesFirst` allows it.
    static func open(_ path: String, makesFirst: Bool) throws -> AppsFile {
        guard let data = FileManager.default.contents(atPath: path) else {
            guard makesFirst, !FileManager.default.fileExists(atPath: path) else {
                throw SettingsError("apps file \(path) cannot be read")
            }
            let app = freshApp()
            let entry = Entry(
                appId: app.id.text, appKey: app.key, appSecret: app.secret, masterSecret: app.masterSecret,
                name: app.name, apns: nil)
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            let text = String(decoding: try encoder.encode([entry]), as: UTF8.self) + "\n"
            guard try SecretFile.create(path, text) else { return try open(path, makesFirst: makesFirst) }
            return AppsFile(apps: [app], isNew: true)
        }
        let entries: [Entry]
        do {
            entries = try JSONDecoder().decode([Entry].self, from: data)
        } catch {
            throw SettingsError("apps file \(path): \(reason(error))")
        }
        guard !entries.isEmpty else { throw SettingsError("apps file \(path) names no app") }
        var apps: [App] = []
        var problems: [String] = []
        for (index, entry) in entries.enumerated() {
            switch check(entry, index, among: apps) {
            case .success(let app): apps.append(app)
            case .failure(let problem): problems.append(problem.description)
            }
        }
        guard problems.isEmpty else { throw SettingsError(["apps file \(path)"] + problems) }
        return AppsFile(apps: apps, isNew: false)
    }

    static func freshApp() -> App {
        func secret(_ bytes: Int) -> String { SecretFile.hex(Cryptography.random(bytes)) }
        let id = "app-" + secret(4)
        guard let appID = AppID(id) else { preconditionFailure("\(id) is an app id") }
        return App(
            id: appID, key: secret(8), secret: secret(16), masterSecret: secret(16), name: "First app", topic: nil)
    }

    private static func check(_ entry: Entry, _ index: Int, among apps: [App]) -> Result<App, SettingsError> {
        let place = "app \(index + 1) (\"\(entry.appId)\")"
        guard let id = AppID(entry.appId) else {
            return .failure(SettingsError("\(place): appId must be 1…64 letters, digits, - _ ."))
        }
        guard !apps.contains(where: { $0.id == id }) else {
            return .failure(SettingsError("\(place): appId is there twice"))
        }
        for (name, value) in [
            ("appKey", entry.appKey), ("appSecret", entry.appSecret), ("masterSecret", entry.masterSecret),
        ] where value.isEmpty {
            return .failure(SettingsError("\(place): \(name) is empty"))
        }
        if let environment = entry.apns?.environment, PushEnvironment(name: environment) == nil {
            return .failure(SettingsError("\(place): apns.environment must be sandbox or production"))
        }
        if let receipts = entry.receipts {
            if let fault = ReceiptTarget.fault(of: receipts.url) {
                return .failure(SettingsError("\(place): receipts.url \(fault)"))
            }
            if let file = receipts.caFile, !FileManager.default.isReadableFile(atPath: file) {
                return .failure(SettingsError("\(place): receipts.caFile \"\(file)\" cannot be read"))
            }
        }
        return .success(
            App(
                id: id, key: entry.appKey, secret: entry.appSecret, masterSecret: entry.masterSecret, name: entry.name,
                topic: entry.apns?.topic, receipts: entry.receipts?.target))
    }

    private static func reason(_ error: any Error) -> String {
        switch error {
        case DecodingError.keyNotFound(let key, let context):
            "\(path(context.codingPath))\(key.stringValue) is missing"
        case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
            "\(path(context.codingPath))has the wrong type"
        default: "not a JSON array of apps"
        }
    }

    private static func path(_ keys: [any CodingKey]) -> String {
        keys.map { key in key.intValue.map { "app \($0 + 1): " } ?? "\(key.stringValue) " }.joined()
    }
}
