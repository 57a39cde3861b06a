internal import FerryCore
internal import FerryGateway
internal import FerryIO
internal import Foundation

/// A setting that cannot be used, as sentences for people.
struct SettingsError: Error, CustomStringConvertible {
    let description: String
    init(_ problems: String...) { description = problems.joined(separator: "; ") }
    init(_ problems: [String]) { description = problems.joined(separator: "; ") }
}

/// What `ferry serve` was told: the configuration file, then the options over it.
struct ServeSettings {
    let configuration: GatewayConfiguration
    /// The app that was made because there was none: its guide is shown when it is made, and later to whoever starts the
    /// gateway at a terminal. Never into a log, where secrets would stay.
    let firstApp: App?
    let isFirstAppNew: Bool
    let appsPath: String?
    let dataPath: String

    /// Keys of the file that name places; all others are in `ConfigurationKey.all`.
    static let placeKeys: [(name: String, meaning: String)] = [
        ("data", "data folder (`--data`)"),
        ("identity", "identity key file (`--identity`)"),
        ("apps", "apps file (`--apps`)"),
        ("deviceListen", "`HOST:PORT` for devices (`--device-listen`)"),
        ("httpListen", "`HOST:PORT` for backends (`--http-listen`)"),
        ("backendListen", "`HOST:PORT` for backends' links, or `none` (`--backend-listen`)"),
        ("store", "`embedded` or `memory` (`--store`)"),
        ("insecurePlain", "`true` lets listeners without TLS be reached from beyond this machine (`--insecure-plain`)"),
    ]

    init(_ arguments: ArgumentParser.Arguments) throws {
        let file = try ConfigurationFile(path: arguments.value("--config"))
        func setting(_ option: String, _ key: String) throws -> String? {
            if let value = arguments.value(option) { return value }
            return try file.text(key)
        }
        let givenData = try setting("--data", "data")
        dataPath = givenData ?? "data"
        guard !dataPath.isEmpty else { throw SettingsError("--data is empty; name a folder") }
        let storeName = try setting("--store", "store") ?? "embedded"
        let givenApps = try setting("--apps", "apps")
        let givenIdentity = try setting("--identity", "identity")
        let isMemory: Bool
        switch storeName {
        case "embedded": isMemory = false
        case "memory": isMemory = true
        default: throw SettingsError("store \"\(storeName)\" is not known; use embedded or memory")
        }
        // Beside the folder and not in it, so that a copy of the data holds no secret.
        let base = Self.folderPath(dataPath)
        guard base != "/" else { throw SettingsError("the data folder cannot be /; name a folder of its own") }
        // Whatever is wrong is said before anything is made: the identity and the apps come last.
        var configuration = GatewayConfiguration(identity: try IdentityFile.fresh().identity)
        configuration.shards = max(1, ProcessInfo.processInfo.activeProcessorCount)
        try file.apply(to: &configuration)
        if let text = arguments.value("--shards") {
            guard let shards = Int(text), (1...256).contains(shards) else {
                throw SettingsError("--shards \"\(text)\" must be a whole number, 1…256")
            }
            configuration.shards = shards
        }
        configuration.deviceListen =
            try Self.address(
                try setting("--device-listen", "deviceListen"), "--device-listen") ?? configuration.deviceListen
        configuration.httpListen =
            try Self.address(
                try setting("--http-listen", "httpListen"), "--http-listen") ?? configuration.httpListen
        if let text = try setting("--backend-listen", "backendListen") {
            configuration.linkListen = text == "none" ? nil : try Self.address(text, "--backend-listen")
        } else if configuration.deviceListen.port == 0 {
            // Whoever lets one port be picked has other gateways on this machine.
            configuration.linkListen?.port = 0
        }
        let isInsecureAllowed = try file.flag("insecurePlain") ?? false
        if !arguments.has("--insecure-plain") && !isInsecureAllowed {
            let link = configuration.linkListen.map { [("--backend-listen", $0)] } ?? []
            for (name, address) in [
                ("--device-listen", configuration.deviceListen), ("--http-listen", configuration.httpListen),
            ] + link where !address.isLoopback {
                throw SettingsError(
                    "\(name) \(address) can be reached from beyond this machine, and there is no TLS yet: "
                        + "listen on 127.0.0.1, or add --insecure-plain if the network in between is trusted")
            }
        }
        configuration.witnessPath = arguments.value("--witness")
        configuration.acceptsLoss = arguments.has("--accept-loss")
        configuration.store = isMemory ? .memory : .embedded(folder: base)
        // A store in memory has no folder of its own; one that is named all the same gets the outbox.
        configuration.outboxPath = isMemory && givenData == nil ? nil : base + "/outbox.jsonl"
        if isMemory, givenData != nil {
            do { _ = try Directory.make(base) } catch { throw SettingsError("data folder \(base): \(error)") }
        }
        if !isMemory || givenIdentity != nil {
            let isUsed = !isMemory && FileManager.default.fileExists(atPath: base + "/FORMAT")
            configuration.identity = try IdentityFile.open(
                givenIdentity ?? base + ".identity", forUsed: isUsed ? base : nil)
        }
        let apps: AppsFile
        if isMemory && givenApps == nil {
            apps = AppsFile(apps: [AppsFile.freshApp()], isNew: true)
            appsPath = nil
        } else {
            let path = givenApps ?? base + ".apps.json"
            apps = try AppsFile.open(path, makesFirst: givenApps == nil)
            appsPath = path
        }
        configuration.apps = AppRegistry(apps.apps)
        isFirstAppNew = apps.isNew
        let isOwnFile = givenApps == nil && apps.apps.count == 1
        firstApp = apps.isNew || (isOwnFile && isatty(STDERR_FILENO) == 1) ? apps.apps.first : nil
        self.configuration = configuration
    }

    /// Without `.`, `..` and slashes at the end, so that what is put beside the folder is not put into it.
    private static func folderPath(_ path: String) -> String {
        guard path.hasSuffix("/") || path.split(separator: "/").contains(where: { $0 == "." || $0 == ".." }) else {
            return path
        }
        return URL(fileURLWithPath: path, isDirectory: true).standardizedFileURL.path
    }

    private static func address(_ text: String?, _ name: String) throws -> SocketAddress? {
        guard let text else { return nil }
        guard let address = SocketAddress(text) else {
            throw SettingsError("\(name) \"\(text)\" is not HOST:PORT with an IPv4 address or localhost")
        }
        return address
    }
}
