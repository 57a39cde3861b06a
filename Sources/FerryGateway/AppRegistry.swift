package import FerryCore
package import FerryReceipts

/// A customer's application: who its backend and its devices are, and how APNs knows it.
package struct App: Sendable, Equatable {
    package let id: AppID
    /// Names the app to `/auth`.
    package let key: String
    /// What devices register with.
    package let secret: String
    /// What the backend proves itself with.
    package let masterSecret: String
    package let name: String?
    /// `apns-topic`, the bundle id. The app id where the operator named none.
    package let topic: String
    /// Where its receipts go; nil: nowhere.
    package let receipts: ReceiptTarget?
    /// Its place among the apps of its registry, 0 for one that is in none.
    package fileprivate(set) var number: UInt32 = 0

    package init(
        id: AppID, key: String, secret: String, masterSecret: String, name: String?, topic: String?,
        receipts: ReceiptTarget? = nil
    ) {
        self.id = id
        self.key = key
        self.secret = secret
        self.masterSecret = masterSecret
        self.name = name
        self.topic = topic ?? id.text
        self.receipts = receipts
    }
}

/// The apps of this gateway.
package struct AppRegistry: Sendable {
    private let apps: [AppID: App]

    package init(_ apps: [App]) {
        var known = Dictionary(apps.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        for (number, app) in known.values.sorted(by: { $0.id.text < $1.id.text }).enumerated() {
            known[app.id]?.number = UInt32(truncatingIfNeeded: number)
        }
        self.apps = known
    }

    package subscript(id: AppID) -> App? { apps[id] }
    /// By number.
    package var all: [App] { apps.values.sorted { $0.number < $1.number } }
}
