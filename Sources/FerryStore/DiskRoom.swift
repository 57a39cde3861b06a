internal import FerryCore
internal import FerryIO

/// Watches whether the disk has the reserve that is to stay free.
struct DiskRoom: Sendable {
    private let disk: any Disk
    private let reserve: Int
    /// So much more than the reserve must be free before there is enough again: the next segment alone takes that.
    private let margin: Int
    private let clock: @Sendable () -> Instant
    private var nextLook = Instant.distantPast
    /// The segment that was written at the last look.
    private var segment: UInt32 = 0
    private(set) var isShort = false

    /// Between two looks, in milliseconds.
    static let pause: Int32 = 1000

    init(_ disk: any Disk, _ options: StoreOptions) {
        self.disk = disk
        reserve = options.diskReserveBytes
        margin = options.segmentBytes
        clock = options.clock
    }

    /// Asks the disk, unless it was asked just now and no segment has taken its room since, nor was one refused it; whether
    /// `isShort` has changed.
    mutating func look(segment: UInt32, wasRefused: Bool) -> Bool {
        let now = clock()
        guard reserve > 0, now >= nextLook || segment != self.segment || wasRefused else { return false }
        self.segment = segment
        nextLook = now + .milliseconds(Int64(Self.pause))
        // A disk that cannot be asked is not a full one.
        guard let free = try? disk.freeBytes() else { return false }
        let isEnough = free >= reserve && (!isShort || free - reserve >= margin)
        guard isShort == isEnough else { return false }
        isShort = !isEnough
        return true
    }
}
