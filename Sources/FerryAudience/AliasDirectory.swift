package import FerryCore

/// The names that backends gave the devices of one app. A device has one at most; a name has several devices. It decides and
/// does no I/O: whoever drives it puts the changes on disk before it answers. Names are compared byte for byte.
package struct AliasDirectory: Sendable {
    /// What the row of a device says from now on.
    package struct Change: Hashable, Sendable {
        package let cid: CID
        /// nil: it has none.
        package let alias: String?

        package init(_ cid: CID, _ alias: String?) {
            self.cid = cid
            self.alias = alias
        }
    }

    package struct Binding: Hashable, Sendable {
        package let cid: CID
        package let alias: String

        package init(cid: CID, alias: String) {
            self.cid = cid
            self.alias = alias
        }
    }

    /// A name would have too many devices: the last entry that gives it one more.
    package struct Full: Error, Hashable, Sendable {
        package let place: Int
        package let alias: String
        package let devices: Int

        package init(place: Int, alias: String, devices: Int) {
            self.place = place
            self.alias = alias
            self.devices = devices
        }
    }

    /// In the order of their cids; none is empty.
    private var devices: [ExactText: [CID]] = [:]
    private var aliases: [CID: ExactText] = [:]

    package init() {}

    /// In no order.
    package var cids: some Collection<CID> { aliases.keys }
    /// Devices that have a name.
    package var count: Int { aliases.count }
    /// What it takes of memory, about.
    package var bytes: Int { aliases.count * 96 + devices.count * 128 }

    package func alias(of cid: CID) -> String? { aliases[cid]?.text }

    /// In the order of their cids.
    package func devices(of alias: String) -> [CID] { devices[ExactText(alias)] ?? [] }

    /// A row that was found at a start.
    package mutating func restore(_ cid: CID, _ alias: String) { set(cid, ExactText(alias)) }

    /// All of the call or nothing: entries in order, so the last of one device holds; names are counted when all is done. The
    /// changes name each device of the call once, whether something changed for it or not: a row that is written again makes
    /// an answer wait for what another call has not on disk yet.
    package mutating func bind(_ bindings: [Binding], limit: Int) throws(Full) -> [Change] {
        var former: [(cid: CID, alias: ExactText?)] = []
        // A name that has more already, since the limit was higher once, may keep them.
        var before: [ExactText: Int] = [:]
        for binding in bindings where before[ExactText(binding.alias)] == nil {
            before[ExactText(binding.alias)] = devices(of: binding.alias).count
        }
        for binding in bindings {
            former.append((binding.cid, aliases[binding.cid]))
            set(binding.cid, ExactText(binding.alias))
        }
        for (place, binding) in bindings.enumerated().reversed()
        where isBound(binding) {
            let count = devices(of: binding.alias).count
            guard count > max(limit, before[ExactText(binding.alias)] ?? 0) else { continue }
            for change in former.reversed() { set(change.cid, change.alias) }
            throw Full(place: place, alias: binding.alias, devices: count)
        }
        return changes(of: bindings.map(\.cid))
    }

    /// What is not bound so stays as it is.
    package mutating func unbind(_ bindings: [Binding]) -> [Change] {
        for binding in bindings where isBound(binding) { set(binding.cid, nil) }
        return changes(of: bindings.map(\.cid))
    }

    private func isBound(_ binding: Binding) -> Bool { aliases[binding.cid] == ExactText(binding.alias) }

    /// Takes the name from all of its devices.
    package mutating func drop(_ alias: String) -> [Change] {
        let going = devices(of: alias)
        for cid in going { set(cid, nil) }
        return changes(of: going)
    }

    /// The device is going.
    package mutating func remove(_ cid: CID) -> [Change] {
        set(cid, nil)
        return [Change(cid, nil)]
    }

    /// The rows of these devices as they are now, each once.
    package func changes(of cids: [CID]) -> [Change] {
        var seen: Set<CID> = []
        return cids.compactMap { seen.insert($0).inserted ? Change($0, aliases[$0]?.text) : nil }
    }

    private mutating func set(_ cid: CID, _ alias: ExactText?) {
        let old = aliases[cid]
        guard old != alias else { return }
        if let old {
            if let place = devices[old]?.firstIndex(of: cid) { devices[old]?.remove(at: place) }
            if devices[old]?.isEmpty == true { devices[old] = nil }
        }
        guard let alias else {
            aliases[cid] = nil
            return
        }
        let place = devices[alias]?.firstIndex { cid < $0 } ?? devices[alias]?.count ?? 0
        devices[alias, default: []].insert(cid, at: place)
        // The text that the index has, so that it is in memory once.
        aliases[cid] = devices.index(forKey: alias).map { devices[$0].key } ?? alias
    }
}

/// The row of a device's name. Its key names the app, since the owner of an app keeps the rows of others too.
package enum AliasRow {
    private static let version: UInt8 = 1
    private static let textBytes = 4_096

    package static func key(_ app: AppID, _ cid: CID) -> [UInt8] {
        var writer = ByteWriter()
        writer.string(app.text.utf8)
        writer.identifier(cid.value)
        return writer.bytes
    }

    package static func value(_ alias: String) -> [UInt8] {
        var writer = ByteWriter()
        writer.byte(version)
        writer.string(alias.utf8)
        return writer.bytes
    }

    /// nil when it is none of this version.
    package static func read(key: [UInt8], value: [UInt8]) -> (app: AppID, cid: CID, alias: String)? {
        key.withUnsafeBytes { keyBytes in
            value.withUnsafeBytes { valueBytes in
                var keyReader = ByteReader(keyBytes)
                var reader = ByteReader(valueBytes)
                guard let name = keyReader.string(limit: 64).flatMap({ String(validating: $0, as: UTF8.self) }),
                    let app = AppID(name), let cid = keyReader.identifier(), keyReader.isAtEnd,
                    reader.byte() == version,
                    let alias = reader.string(limit: textBytes).flatMap({ String(validating: $0, as: UTF8.self) }),
                    reader.isAtEnd
                else { return nil }
                return (app, CID(cid), alias)
            }
        }
    }
}
