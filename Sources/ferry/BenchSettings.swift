internal import FerryCore
internal import FerryGateway
internal import FerryIO

/// A run that cannot begin or go on, as a sentence for people.
struct BenchFailure: Error { let sentence: String }

/// What `ferry bench` was asked for, checked.
struct BenchSettings {
    /// What is measured.
    enum Mode: String, CaseIterable {
        /// Messages to devices that are there.
        case online
        /// Messages to devices that have said `bye`.
        case offline
        /// Devices that are there and get nothing.
        case idle
        /// As `offline`; then all come, collect what was kept, and go.
        case flush
        /// Messages to devices that are there, without and with others that come and collect a long backlog each.
        case backlog
        /// Devices that have not acknowledged what they got, and lose their gateway; when there is one again, all come at once.
        case reconnect
        /// Messages to all devices that are there.
        case broadcast
    }

    /// When a device acknowledges.
    enum Acks: String, CaseIterable {
        /// After each read of its socket.
        case each
        /// After 32 messages or one second, the latest that the protocol allows.
        case late
        case none
    }

    /// How messages come in.
    enum Ingress: String, CaseIterable {
        /// Single pushes.
        case http
        /// Many in one call.
        case batch
        /// Backends' links.
        case link

        /// What waits for its answer on one connection, if nothing else is said.
        var pipeline: Int {
            switch self {
            case .http: 32
            case .batch: 8
            case .link: 1_024
            }
        }
    }

    let mode: Mode
    let ingress: Ingress
    /// Messages in one call, with batches.
    let batch: Int
    /// The gateway's address for links; nil without them.
    let link: SocketAddress?
    let server: SocketAddress
    let http: SocketAddress
    let httpURL: String
    let appID: AppID
    let appSecret: [UInt8]
    let appKey: String
    let masterSecret: String
    let devices: Int
    /// In all; to each device in the modes `offline`, `flush` and `reconnect`. nil: until the time is over.
    let messages: Int?
    let seconds: Int
    let warmUpSeconds: Int
    let payloadBytes: Int
    let payload: BenchPayload
    /// Devices say that they take compressed payloads.
    let compresses: Bool
    let backends: Int
    let pipeline: Int
    /// Messages per second; nil: as fast as answers and deliveries come.
    let rate: Int?
    let outstanding: Int
    let acks: Acks
    let gatewayProcess: Int?
    /// In the mode `backlog`, the devices with a backlog; they are the first of all.
    let crowded: Int

    /// Descriptors for standard streams, pollers, `/proc`, and what the runtime holds.
    private static let descriptorReserve = 48
    /// Open at once in the modes whose devices come and go.
    static let passingSockets = 4_096

    init(_ arguments: ArgumentParser.Arguments) throws(BenchFailure) {
        mode = try Self.choice(arguments, "--mode", .online)
        acks = try Self.choice(arguments, "--ack", .each)
        ingress = try Self.choice(arguments, "--ingress", .http)
        batch = try Self.number(arguments, "--batch", 1...200) ?? 200
        if ingress == .link {
            let text = arguments.value("--link") ?? ""
            guard let link = SocketAddress(text), link.port != 0 else {
                throw BenchFailure(
                    sentence: "--ingress link needs --link HOST:PORT with an IPv4 address or localhost, not \"\(text)\""
                )
            }
            self.link = link
        } else {
            link = nil
        }
        let serverText = arguments.value("--server") ?? ""
        guard let server = SocketAddress(serverText), server.port != 0 else {
            throw BenchFailure(
                sentence: "--server \"\(serverText)\" is not HOST:PORT with an IPv4 address or localhost")
        }
        self.server = server
        httpURL = arguments.value("--http") ?? ""
        guard httpURL.hasPrefix("http://"), let http = SocketAddress(String(httpURL.dropFirst(7))), http.port != 0
        else {
            throw BenchFailure(
                sentence: "--http \"\(httpURL)\" is not http://HOST:PORT with an IPv4 address or localhost")
        }
        self.http = http
        let app = try BenchApp(arguments)
        appID = app.id
        appSecret = Array(app.secret.utf8)
        appKey = app.key
        masterSecret = app.masterSecret

        devices = try Self.number(arguments, "--devices", 1...10_000_000) ?? 1_000
        let isPassing = mode == .offline || mode == .flush
        let isToEach = isPassing || mode == .reconnect
        let messages = try Self.number(arguments, "--messages", 1...1_000_000_000)
        let usual: Int? =
            switch mode {
            case .offline, .flush: 10
            case .backlog: 10_000
            case .reconnect: 2
            case .broadcast: 5
            case .online, .idle: nil
            }
        self.messages = messages ?? usual
        crowded = mode == .backlog ? try Self.number(arguments, "--crowded", 1...10_000) ?? 20 : 0
        guard crowded < devices else {
            throw BenchFailure(sentence: "--crowded \(crowded) leaves none of \(devices) devices: give more --devices")
        }
        seconds = try Self.number(arguments, "--seconds", 1...86_400) ?? 5
        guard messages == nil || mode == .backlog || mode == .broadcast || !arguments.has("--seconds") else {
            throw BenchFailure(sentence: "give --messages or --seconds, not both")
        }
        guard !isToEach || !arguments.has("--seconds") else {
            throw BenchFailure(sentence: "--mode \(mode.rawValue) takes --messages (to each device), not --seconds")
        }
        warmUpSeconds = try Self.number(arguments, "--warm-up", 0...3_600) ?? 1
        payloadBytes = try Self.number(arguments, "--payload-bytes", BenchStamp.bytes...Limits.payloadBytes) ?? 256
        guard mode != .broadcast || payloadBytes > BenchStamp.bytes else {
            throw BenchFailure(sentence: "--mode broadcast needs --payload-bytes above \(BenchStamp.bytes)")
        }
        payload = try Self.choice(arguments, "--payload", .filler)
        compresses = arguments.has("--compress")
        guard payload == .filler || mode != .broadcast else {
            throw BenchFailure(sentence: "--mode broadcast tells messages apart by their filler: leave --payload out")
        }
        guard payload == .filler || ingress == .link else {
            throw BenchFailure(sentence: "--payload \(payload.rawValue) needs --ingress link, which takes any bytes")
        }
        backends = try Self.number(arguments, "--connections", 1...1_000) ?? (ingress == .http ? 32 : 4)
        pipeline =
            try Self.number(arguments, "--pipeline", 1...(ingress == .link ? 4_096 : 64)) ?? ingress.pipeline
        let rate = try Self.number(arguments, "--rate", 1...10_000_000)
        self.rate = mode == .backlog ? rate ?? 5_000 : rate
        outstanding = try Self.number(arguments, "--outstanding", 1...1_000_000) ?? 1_000
        gatewayProcess = try Self.number(arguments, "--gateway-pid", 1...Int(Int32.max))
        if let process = gatewayProcess, ProcessGauge.read(process: process) == nil {
            throw BenchFailure(sentence: "--gateway-pid \(process): there is no such process")
        }
        guard mode != .idle || gatewayProcess != nil else {
            throw BenchFailure(sentence: "--mode idle reads the gateway's memory: give --gateway-pid")
        }
        try checkDescriptors(isPassing: isPassing)
    }

    private func checkDescriptors(isPassing: Bool) throws(BenchFailure) {
        let limit = ProcessSignals.raiseDescriptorLimit()
        let wanted = (isPassing ? min(devices, Self.passingSockets) : devices) + backends + Self.descriptorReserve
        guard wanted <= limit else {
            let most = limit - backends - Self.descriptorReserve
            throw BenchFailure(
                sentence: "\(devices) devices need a socket each, and this process may open \(limit) descriptors "
                    + "(ulimit -Hn): use at most \(max(0, most)) devices, or raise the limit")
        }
    }

    static func number(
        _ arguments: ArgumentParser.Arguments, _ name: String, _ range: ClosedRange<Int>
    ) throws(BenchFailure) -> Int? {
        guard let text = arguments.value(name) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw BenchFailure(
                sentence: "\(name) \"\(text)\" must be a whole number, \(range.lowerBound)…\(range.upperBound)")
        }
        return number
    }

    private static func choice<Choice: RawRepresentable & CaseIterable>(
        _ arguments: ArgumentParser.Arguments, _ name: String, _ standard: Choice
    ) throws(BenchFailure) -> Choice where Choice.RawValue == String {
        guard let text = arguments.value(name) else { return standard }
        guard let choice = Choice(rawValue: text) else {
            let names = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw BenchFailure(sentence: "\(name) \"\(text)\" is not known; use one of \(names)")
        }
        return choice
    }
}

/// The app that the bench's devices and backends belong to: from options, or from the gateway's apps file.
struct BenchApp {
    let id: AppID
    let secret: String
    let key: String
    let masterSecret: String

    init(_ arguments: ArgumentParser.Arguments) throws(BenchFailure) {
        let wanted = arguments.value("--app")
        if let path = arguments.value("--apps") {
            let file: AppsFile
            do { file = try AppsFile.open(path, makesFirst: false) } catch { throw BenchFailure(sentence: "\(error)") }
            guard let app = file.apps.first(where: { wanted == nil || $0.id.text == wanted }) else {
                throw BenchFailure(sentence: "apps file \(path) has no app \"\(wanted ?? "")\"")
            }
            id = app.id
            secret = app.secret
            key = app.key
            masterSecret = app.masterSecret
            return
        }
        guard let id = wanted.flatMap({ AppID($0) }) else {
            throw BenchFailure(sentence: "name the app: --apps FILE, or --app ID with its three secrets")
        }
        self.id = id
        secret = try Self.secret(arguments, "--app-secret", "FERRY_APP_SECRET")
        key = try Self.secret(arguments, "--app-key", "FERRY_APP_KEY")
        masterSecret = try Self.secret(arguments, "--master-secret", "FERRY_MASTER_SECRET")
    }

    private static func secret(
        _ arguments: ArgumentParser.Arguments, _ name: String, _ variable: String
    ) throws(BenchFailure) -> String {
        guard let value = arguments.value(name), !value.isEmpty else {
            throw BenchFailure(sentence: "\(name) (or \(variable) in the environment) is missing; or use --apps FILE")
        }
        return value
    }
}
