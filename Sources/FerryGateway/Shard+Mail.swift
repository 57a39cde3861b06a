internal import FerryIO

/// Mail to other shards.
extension Shard {
    /// Sends `message` to a shard at the end of the tick; to itself at once.
    mutating func post(_ message: ShardMessage, to shard: Int) {
        if shard == index { handle(message) } else { mail[shard].append(message) }
    }

    /// At the end of the turn.
    mutating func postMail() {
        mailOrders()
        for shard in mail.indices where !mail[shard].isEmpty {
            environment.mailboxes[shard].post(mail[shard])
            mail[shard].removeAll(keepingCapacity: true)
        }
    }
}
