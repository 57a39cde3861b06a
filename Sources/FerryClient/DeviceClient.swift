internal import FerryClientCore
internal import FerryCore
internal import FerryIO
internal import FerryWire
internal import Synchronization

/// A device of a gateway: attaches, comes back as the gateway's close codes tell, and hands each message to the app once.
///
/// It runs on a thread of its own and calls the handler there. A message counts as handed over when the handler returns, so
/// the handler should keep it, not work on it: while it runs, the connection waits.
public final class DeviceClient: Sendable {
    private let commands: Mailbox<ClientCommand>
    private let signals = ClientSignals()
    private let thread = Mutex<OSThread?>(nil)
    private let pending: Mutex<DriverParts?>
    /// The device's identity when the client was made; nil when it has none yet.
    public let storedCID: String?

    /// Makes a client; it does nothing before `start()`.
    public init(
        _ configuration: DeviceConfiguration, store: some IdentityStore = MemoryIdentityStore(),
        handler: @escaping @Sendable (DeviceEvent) -> Void
    ) throws(DeviceClientError) {
        guard let server = SocketAddress(configuration.server), server.port != 0 else {
            throw .configuration("\"\(configuration.server)\" is not HOST:PORT with an IPv4 address or localhost")
        }
        guard let appID = AppID(configuration.appID) else {
            throw .configuration(
                "\"\(configuration.appID)\" is not an app id: 1 to 64 of letters, digits, '-', '_', '.'")
        }
        var core = ClientConfiguration(
            appID: appID,
            wishes: AttachWishes(
                keepAlive: configuration.keepAliveSeconds, window: configuration.window,
                capabilities: configuration.takesCompressedPayloads
                    ? [.compressedPayloads, .typedContents] : .typedContents),
            clientInfo: configuration.clientInfo, acknowledges: configuration.acknowledges)
        core.deviceToken = try configuration.deviceToken.map(TokenChange.init(checking:))
        let record: ClientRecord
        do {
            record = try store.load().map { try StateCodec.decode($0, appID: appID) } ?? ClientRecord()
        } catch let error as DeviceClientError {
            throw error
        } catch {
            throw .store("\(error)")
        }
        do throws(SystemError) { commands = try Mailbox() } catch { throw .system(error.description) }
        storedCID = record.identity?.cid.description
        pending = Mutex(
            DriverParts(
                machine: ClientStateMachine(configuration: core, record: record), server: server,
                appSecret: Array(configuration.appSecret.utf8), store: store, handler: handler, commands: commands,
                signals: signals))
    }

    deinit { stop() }

    /// Starts the client's thread. A second call does nothing.
    public func start() throws(DeviceClientError) {
        guard let parts = pending.withLock({ $0.take() }) else { return }
        do throws(SystemError) {
            let started = try OSThread(name: "ferry-client") {
                do throws(SystemError) {
                    var driver = try ClientDriver(parts)
                    driver.run()
                } catch {
                    let reason = "the client could not start: \(error)"
                    parts.handler(.offline(reason: reason, code: nil, next: .never))
                }
                parts.signals.hasEnded.store(true, ordering: .releasing)
            }
            var slot: OSThread? = started
            thread.withLock { $0 = slot.take() }
        } catch {
            throw .system(error.description)
        }
    }

    /// Asks the client to acknowledge what it has, say bye and end; `stopped` is the last event. May be called from the
    /// handler: then nothing is handed over after the event that it is at.
    public func stop() {
        signals.isStopAsked.store(true, ordering: .releasing)
        commands.post(.stop)
    }

    /// Whether the client's thread has done its last.
    public var hasEnded: Bool { signals.hasEnded.load(ordering: .acquiring) }

    /// Waits for the end of a client that was asked to stop. Not to be called from the handler.
    public func wait() {
        var taken = thread.withLock { $0.take() }
        if let thread = taken.take() { thread.join() }
    }

    /// The app can be seen: come back to life now.
    public func enteredForeground() { commands.post(.foreground) }

    /// The app cannot be seen: the device counts as offline from now on, so that notifications reach its user.
    public func enteredBackground() { commands.post(.background) }

    /// The system gave the app another token, or (nil) took it away.
    public func setDeviceToken(_ token: DeviceConfiguration.DeviceToken?) throws(DeviceClientError) {
        commands.post(.token(try token.map(TokenChange.init(checking:)) ?? .clear))
    }
}

/// What other threads ask of a client's thread.
enum ClientCommand: Sendable {
    case stop
    case foreground
    case background
    case token(TokenChange)
}

/// What a client's threads see of each other at once, without the mailbox.
final class ClientSignals: Sendable {
    let isStopAsked = Atomic(false)
    let hasEnded = Atomic(false)
}

/// What a driver is made of, until its thread makes it.
struct DriverParts: Sendable {
    let machine: ClientStateMachine
    let server: SocketAddress
    let appSecret: [UInt8]
    let store: any IdentityStore
    let handler: @Sendable (DeviceEvent) -> Void
    let commands: Mailbox<ClientCommand>
    let signals: ClientSignals
}

extension TokenChange {
    init(checking token: DeviceConfiguration.DeviceToken) throws(DeviceClientError) {
        let environment: PushEnvironment = token.environment == .sandbox ? .sandbox : .production
        guard let token = PushToken(environment: environment, bytes: token.bytes) else {
            throw .configuration("a device token has 1 to \(Limits.pushTokenBytes) bytes")
        }
        self = .set(token)
    }
}
