internal import FerryCore

/// Posts that name another way than the usual one.
extension Ledger {
    /// The device has no token for a strategy that needs one: a refusal that a post by such a strategy may get.
    /// An attempt that comes behind the end of its device.
    func isOfErased(_ answer: [UInt8], _ number: Int) -> Bool {
        erased != nil && Post.contains("target user is invalid: cid", in: answer)
    }

    func isWithoutToken(_ answer: [UInt8], _ number: Int) -> Bool {
        posts[number].handsOver && Post.contains(#""code":20001"#, in: answer)
            && Post.contains("has no device token", in: answer)
    }

    /// Its owner is to be woken if the device stays away. By 2 and 4 a token that came or went in between decides too.
    func isToBeWoken(_ post: Post) -> Bool {
        switch post.strategy {
        case 3: false
        case 2, 4: devices[post.device].tokenStep < post.firstSentStep
        default: true
        }
    }
}
