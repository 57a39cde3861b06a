internal import FerryReceipts
internal import Synchronization

/// A channel of receipts that answers when it is told to.
final class SlowReceipts: ReceiptChannel {
    struct Offer: Sendable {
        let batch: ReceiptBatch
        let told: @Sendable (ReceiptProgress) -> Void
    }

    private let fresh = Mutex<[Offer]>([])

    func offer(_ batch: ReceiptBatch, told: @escaping @Sendable (ReceiptProgress) -> Void) {
        fresh.withLock { $0.append(Offer(batch: batch, told: told)) }
    }

    /// What was offered since the last call.
    func takeFresh() -> [Offer] {
        fresh.withLock { offers in
            defer { offers = [] }
            return offers
        }
    }

    func close() {}
}
