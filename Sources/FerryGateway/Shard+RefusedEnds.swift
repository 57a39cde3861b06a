internal import FerryCore
internal import FerryStore

/// Ends whose records the disk refused, and for which nobody waits. Their messages have ended here, and are counted so; a start
/// would find them kept. So they go to the disk with whatever goes there next, rows that count them first of all, or alone after a
/// while.
extension Shard {
    mutating func keepEnds(ofRefused records: [UInt8]) {
        records.withUnsafeBytes { bytes in
            var rest = bytes
            var last: (cid: CID, seq: Seq)?
            while let body = RecordCodec.body(of: rest) {
                rest = UnsafeRawBufferPointer(rebasing: rest[(RecordCodec.headerBytes + body.count)...])
                switch RecordCodec.decode(body) {
                case .messageAccepted(let message): last = (message.cid, message.seq)
                case .acknowledged(let cid, _): keepAck(of: cid)
                case .settled(let cid, let seq, let state, isTold: false):
                    // Right behind its message, which was refused too.
                    if let last, last == (cid, seq) { continue }
                    keepEnd(.settled(cid: cid, seq: seq, state: state, isTold: false))
                default: continue
                }
            }
        }
    }

    private mutating func keepAck(of cid: CID) {
        guard let device = devices.index(of: cid), !devices[device].isAckPending else { return }
        devices[device].isAckPending = true
        acknowledging.append(Int32(device))
        refusedEndsDue = now + .seconds(1)
    }

    private mutating func keepEnd(_ record: Record) {
        refusedEnds.append(record)
        refusedEndsDue = now + .seconds(1)
    }
}
