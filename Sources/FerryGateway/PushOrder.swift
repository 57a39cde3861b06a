internal import FerryAPI
internal import FerryCore
internal import FerryStore

/// A push on its way from where it came in to the owner of its device: numbers only, so that to copy it is to copy bytes. Its
/// content lies in the `PushOrders` that it came with.
struct PushOrder: BitwiseCopyable {
    /// The app's `number`.
    let app: UInt32
    /// Of a push that came in a batch: its place there; -1 for others.
    let place: Int32
    let cid: CID
    let key: RequestKey
    let origin: APIOrigin
    let ttl: TimeToLive
    let names: PushNames
    /// Where its content begins among all contents, and how long its parts are, in this order.
    fileprivate(set) var start = 0
    fileprivate(set) var requestIDBytes: UInt16 = 0
    fileprivate(set) var collapseBytes: UInt16 = 0
    fileprivate(set) var alertBytes: UInt32 = 0
    fileprivate(set) var payloadBytes: UInt32 = 0
    fileprivate(set) var traitBytes: UInt16 = 0
    fileprivate(set) var isBackground = false
    /// Of its traits, what decides before anything is read.
    fileprivate(set) var kind = ContentKind.transmission
    var route = DeliveryRoute.ownFirst

    init(
        app: UInt32, cid: CID, key: RequestKey, origin: APIOrigin, ttl: TimeToLive, names: PushNames = .own,
        place: Int32 = -1
    ) {
        self.app = app
        self.cid = cid
        self.key = key
        self.origin = origin
        self.ttl = ttl
        self.names = names
        self.place = place
    }

    /// Of a push that came over a link.
    var link: LinkNames? { if case .link(let names) = names { names } else { nil } }
    var hasAlert: Bool { alertBytes > 0 }
    var hasTraits: Bool { traitBytes > 0 }
    fileprivate var contentBytes: Int {
        Int(requestIDBytes) + Int(traitBytes) + Int(collapseBytes) + Int(alertBytes) + Int(payloadBytes)
    }
    /// What it takes of memory while it waits.
    var weight: Int { contentBytes + MemoryCost.order }
}

/// How a push's message and task are called.
enum PushNames: BitwiseCopyable {
    case own
    case link(LinkNames)
    /// It is one of several of this task.
    case task(TaskID)
}

/// The content of one push, in memory that somebody lends for the time of a call.
struct PushContent {
    let requestID: UnsafeRawBufferPointer
    /// `MessageTraits.encoded`.
    let traits: UnsafeRawBufferPointer
    let payload: UnsafeRawBufferPointer
    let alert: AcceptedFields.Alert?
}

/// Pushes for devices of one owner, with their contents in one run of bytes: what came in since the last look, as one mail.
struct PushOrders {
    private(set) var orders: [PushOrder] = []
    /// The contents, one after the other. Invariant: each order's `start` and sizes lie in here.
    private var bytes: [UInt8] = []

    var isEmpty: Bool { orders.isEmpty }
    private static let keptBytes = 1 << 20

    /// Of a link, where there is no alert: straight from the bytes that came in.
    mutating func append(_ order: PushOrder, payload: UnsafeRawBufferPointer) {
        var order = order
        order.start = bytes.count
        order.payloadBytes = UInt32(truncatingIfNeeded: payload.count)
        bytes.append(contentsOf: payload)
        orders.append(order)
    }

    /// `requestID` has 128 bytes at most, encoded traits 1,024, an alert 4,096, its collapse id 64, a payload 65,536: the API's
    /// limits.
    mutating func append(
        _ order: PushOrder, requestID: String, traits: MessageTraits, payload: UnsafeRawBufferPointer, alert: APNsAlert?
    ) {
        var order = order
        order.start = bytes.count
        var requestID = requestID
        order.requestIDBytes = UInt16(truncatingIfNeeded: requestID.utf8.count)
        requestID.withUTF8 { bytes.append(contentsOf: $0) }
        if traits != .none {
            let encoded = traits.encoded
            order.traitBytes = UInt16(truncatingIfNeeded: encoded.count)
            bytes.append(contentsOf: encoded)
            order.kind = traits.kind
            order.route = traits.route
        }
        if let alert {
            var collapseID = alert.collapseID ?? ""
            order.collapseBytes = UInt16(truncatingIfNeeded: collapseID.utf8.count)
            collapseID.withUTF8 { bytes.append(contentsOf: $0) }
            order.alertBytes = UInt32(truncatingIfNeeded: alert.payload.count)
            order.isBackground = alert.pushType == .background
            bytes.append(contentsOf: alert.payload)
        }
        order.payloadBytes = UInt32(truncatingIfNeeded: payload.count)
        bytes.append(contentsOf: payload)
        orders.append(order)
    }

    /// Lends the memory that `content` points into.
    func withContents(_ body: (UnsafeRawBufferPointer) -> Void) { bytes.withUnsafeBytes(body) }

    /// The content of one of `orders`; `contents` is what `withContents` lends.
    static func content(of order: PushOrder, in contents: UnsafeRawBufferPointer) -> PushContent {
        var start = order.start
        func next(_ count: Int) -> UnsafeRawBufferPointer {
            defer { start += count }
            return UnsafeRawBufferPointer(rebasing: contents[start..<start + count])
        }
        let requestID = next(Int(order.requestIDBytes))
        let traits = next(Int(order.traitBytes))
        let collapseID = next(Int(order.collapseBytes))
        let body = next(Int(order.alertBytes))
        let payload = next(Int(order.payloadBytes))
        let alert: AcceptedFields.Alert? =
            order.hasAlert
            ? AcceptedFields.Alert(
                body: body, collapseID: collapseID.isEmpty ? nil : collapseID, isBackground: order.isBackground) : nil
        return PushContent(requestID: requestID, traits: traits, payload: payload, alert: alert)
    }

    /// One of `orders` by itself, for one that must wait.
    static func alone(_ order: PushOrder, in contents: UnsafeRawBufferPointer) -> PushOrders {
        var orders = PushOrders()
        var copy = order
        copy.start = 0
        orders.bytes = [UInt8](contents[order.start..<order.start + order.contentBytes])
        orders.orders = [copy]
        return orders
    }

    /// Keeps its memory, unless that is of a rush.
    mutating func removeAll() {
        orders.removeAll(keepingCapacity: true)
        bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptBytes)
    }
}
