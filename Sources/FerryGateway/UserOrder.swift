internal import FerryAPI
internal import FerryAudience
internal import FerryCore
internal import FerryStore

/// What the shard of a call about users asks of the owners of devices and of the app. Devices are the owner's own.
enum UserOrder: Sendable {
    // Of the owners of devices; answered by parts.
    /// Which of them the app does not have.
    case verify(UserOrigin, [CID])
    case tag(UserOrigin, String, [CID], isSet: Bool)
    case block(UserOrigin, [CID], isBlocked: Bool)
    case badge(UserOrigin, [CID], BadgeChange)
    case statuses(UserOrigin, [CID])
    case details(UserOrigin, [CID])
    case count(UserOrigin, AudienceExpression)
    // Of the owner of one device; answered to the call.
    case setTags(UserOrigin, CID, [String])
    case tags(UserOrigin, CID)
    case setProfile(UserOrigin, CID, ProfileChange)
    /// A call wants the device gone.
    case erase(Removal)
    /// Its name is gone, or it had none: now the device.
    case remove(Removal)
    /// Its name is still there, and so it stays.
    case keep(Removal)
    /// Who of them is not there is to have no name.
    case confirm(AppID, [CID])
    // Of the owner of the app; answered to the call.
    case bind(UserOrigin, [AliasDirectory.Binding])
    case unbind(UserOrigin, [AliasDirectory.Binding])
    case dropAlias(UserOrigin, String)
    case aliasOf(UserOrigin, CID)
    case devicesOf(UserOrigin, String)
    /// A device is to go: its name goes first.
    case forget(Removal)
    /// It stays after all.
    case giveBack(Removal)
    /// It is gone: should a name have come to it meanwhile, that goes too.
    case gone(AppID, CID)
    // Answered by a part.
    case resolve(UserOrigin, [String])
}

/// The call that an order is for.
struct UserOrigin: Sendable {
    let app: AppID
    let origin: APIOrigin
}

/// A device that is to go.
struct Removal: Sendable {
    let app: AppID
    let cid: CID
    /// The call that wants it; nil: it was not seen for long.
    let origin: APIOrigin?
    /// The name that was taken from it.
    var alias: String?
}

/// What an owner found, for the shard of the call.
enum UserPart: Sendable {
    case unknown([CID])
    case outcomes([UserAnswer.Outcome])
    case statuses([UserAnswer.Status])
    case details([UserAnswer.Detail])
    case count(Int)
    case resolved([[CID]])
    case failed(APIError)
}

/// A call about users that waits for owners.
struct UserQuestion {
    let call: UserCall
    let app: App
    /// Owners that have not answered.
    var open: Int
    /// Its devices are being looked for; what it is for comes after.
    var isVerifying = false
    var unknown: [CID] = []
    var outcomes: [CID: Bool] = [:]
    var statuses: [CID: UserAnswer.Status] = [:]
    var details: [CID: UserAnswer.Detail] = [:]
    var count = 0
    var resolved: [[CID]] = []
    var error: APIError?

    init(_ call: UserCall, _ app: App, open: Int) {
        self.call = call
        self.app = app
        self.open = open
    }

    mutating func take(_ part: UserPart) {
        open -= 1
        switch part {
        case .unknown(let cids): unknown += cids
        case .outcomes(let found): for outcome in found { outcomes[outcome.cid] = outcome.isDone }
        case .statuses(let found): for status in found { statuses[status.cid] = status }
        case .details(let found): for detail in found { details[detail.cid] = detail }
        case .count(let number): count += number
        case .resolved(let devices): resolved = devices
        case .failed(let failure): error = error ?? failure
        }
    }
}

/// What a shard has under way for calls about users.
struct UserCalls {
    /// Calls that came in here and wait for owners.
    var questions: [APIOrigin: UserQuestion] = [:]
    /// Audiences of this shard's devices that are being counted.
    var counts: [AudienceCount] = []
    /// Writes of rows that are on their way to the disk.
    var unwritten = 0
    var removals = RemovalState()
}

/// What follows when rows about users are on disk.
struct UserEffect {
    enum Then {
        /// The call is answered.
        case answer(APIOrigin, UserAnswer)
        /// The shard of the call gets this part.
        case part(APIOrigin, UserPart)
        /// The name of the device is gone: now the device.
        case remove(Removal)
        case nothing
    }

    let then: Then
    let app: AppID
    /// Whose rows they are: of names, or of profiles.
    let devices: [CID]
    let isOfAliases: Bool
}

/// One owner's part of a call for details, while records are loaded.
final class DetailGathering {
    let origin: UserOrigin
    var missing: Int
    var found: [UserAnswer.Detail] = []
    /// The store could tell of every device.
    var isComplete = true

    init(_ origin: UserOrigin, missing: Int) {
        self.origin = origin
        self.missing = missing
    }
}

/// Devices of an audience are being counted, slice by slice.
struct AudienceCount {
    let origin: UserOrigin
    let audience: AudienceExpression
    var cursor: CID?
    var count = 0
}
