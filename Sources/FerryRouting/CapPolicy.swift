package import FerryCore

/// What gives way when a device keeps as much as it may.
package enum CapPolicy: String, Hashable, Sendable, CaseIterable {
    /// The oldest messages that are not in flight are dropped, and the stream tells of it (P8).
    case dropOldest
    /// The new message is refused before it is taken. What was taken is never dropped for it.
    case refuse
}

/// The cap that a message would have exceeded.
package enum CapExceeded: Hashable, Sendable {
    case messages(Cap)
    case bytes(Cap)
}

/// Messages of one device that are on their way to the disk: taken, and not kept yet.
package struct PendingMessages: Hashable, Sendable, BitwiseCopyable {
    package private(set) var count: Int32 = 0
    private var storedBytes: UInt32 = 0

    /// Their payload bytes; 4 GiB and more count as that.
    package var bytes: Int { Int(storedBytes) }

    package init() {}

    package mutating func add(bytes: Int) {
        count = count == .max ? .max : count + 1
        storedBytes = UInt32(clamping: Int(storedBytes) + max(0, bytes))
    }

    /// One of them is kept now, or came to nothing.
    package mutating func remove(bytes: Int) {
        count = max(0, count - 1)
        storedBytes = count == 0 ? 0 : UInt32(clamping: max(0, Int(storedBytes) - max(0, bytes)))
    }
}

extension DeviceStateMachine {
    /// Why a message of `bytes` must not be taken for this device, with `pending` on their way; nil when it may be. Decides
    /// under `CapPolicy.refuse` alone. A device that keeps nothing takes one message of any size, as under the other policy;
    /// a live-only message that finds no session is never kept, so no cap stands against it.
    package func exceededCap(
        bytes: Int, isLiveOnly: Bool, pending: PendingMessages, policy: Policy
    ) -> CapExceeded? {
        guard policy.capPolicy == .refuse else { return nil }
        if isLiveOnly {
            guard case .attached = presence else { return nil }
        }
        let count = log.ownCount + Int(pending.count)
        guard count > 0 else { return nil }
        if count >= policy.messageCap.value { return .messages(policy.messageCap) }
        let room = policy.byteCap.value - log.bytes
        return room < bytes || room - bytes < pending.bytes ? .bytes(policy.byteCap) : nil
    }
}
