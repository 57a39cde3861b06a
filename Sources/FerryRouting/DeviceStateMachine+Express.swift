package import FerryCore

/// A message whose device is there and takes what it gets has two events: it is on disk, and it is acknowledged. Here each of
/// the two is one step with the outcome that `handle` and `next` come to in several. They do the common case only and say so
/// where it is another.
extension DeviceStateMachine {
    /// `.messageSynced`, for a message whose content is at hand and whose connection takes it. Where nothing stands before it
    /// in the stream and the window has room, it is kept and counts as sent: send the answer, which is the message as it is
    /// now. nil: nothing has changed; tell the event.
    package mutating func keepSent(
        _ message: KeptMessage, now: Instant, policy: Policy, spare: inout SpareWork
    ) -> KeptMessage? {
        guard case .attached = presence, message.seq > acknowledged, !message.route.handsOver,
            message.isLiveOnly || message.expiresAt > now
        else {
            return nil
        }
        var window = window
        if work.isEmpty {
            work = spare.take()
        } else {
            guard work[0].isAllSent(upTo: window.sent), window.hasRoom(for: message.payloadBytes),
                work[0].log.count < policy.messageCap.value,
                work[0].log.bytes + Int(message.payloadBytes) <= policy.byteCap.value
            else { return nil }
        }
        var message = message
        if message.stub != .notWanted { message.stub = .none }
        window.didSend(message.seq, bytes: message.payloadBytes)
        // What is in flight has no expiry: the earliest stays as it is.
        work[0].log.append(message)
        work[0].flight = window.flight
        return message
    }

    /// `.acknowledged`, of everything that is kept, all of which was sent. What ends by it is appended to `ended`, in order,
    /// and the acknowledgement is to be journalled. False: nothing has changed; tell the event.
    package mutating func acknowledgeAll(_ seq: Seq, ended: inout [KeptMessage], spare: inout SpareWork) -> Bool {
        guard case .attached = presence, seq > acknowledged, !work.isEmpty, work[0].endsWhole(with: seq) else {
            return false
        }
        work[0].log.appendAll(to: &ended)
        acknowledged = seq
        var over: ContiguousArray<DeviceWork> = []
        swap(&over, &work)
        spare.giveBack(over)
        return true
    }
}

extension DeviceWork {
    /// Everything kept was sent, `sent` the last of it, and there is nothing else that the next message would have to wait for.
    fileprivate func isAllSent(upTo sent: Seq) -> Bool {
        guard gaps.isEmpty, unsyncedDrops == 0 else { return false }
        return log.last.map { $0.seq <= sent } ?? true
    }

    /// All that it holds are messages on their way, the last of which is `seq`.
    fileprivate func endsWhole(with seq: Seq) -> Bool {
        gaps.isEmpty && unsyncedDrops == 0 && unsyncedDue == 0 && defaultStub == .idle && log.last?.seq == seq
            && flight.isWhole(upTo: seq, count: log.count)
    }
}
