internal import FerryGateway
internal import FerryIO
internal import Foundation

/// What a newcomer reads at the first start: lines to paste into other terminals.
enum FirstAppGuide {
    static func text(_ app: App, gateway: Gateway, settings: ServeSettings) -> String {
        // Whole paths, since the other terminals may stand in other folders.
        let ferry = quoted(URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path)
        let place = settings.appsPath.map { "Its secrets are in \($0)." } ?? "It lives as long as this process."
        let http = gateway.httpAddress.description
        let state = quoted(FileManager.default.currentDirectoryPath + "/device.state")
        let cid = "\"$(sed -n 's/^cid = //p' \(state))\""
        let base = "http://\(http)/v2/\(app.id)"
        return """

            \(settings.isFirstAppNew ? "Ferry has made a first app," : "The app of this gateway is") \(app.id). \(place)
            Devices connect to \(gateway.deviceAddress), backends to http://\(http). Paste these into two other terminals.

            Become a device:
              \(ferry) listen --server \(gateway.deviceAddress) --app \(app.id) --app-secret \(app.secret) --state \(state)

            Push to it with curl:
              T=$(date +%s000); TOKEN=$(curl -s \(base)/auth -d "{\\"appkey\\":\\"\(app.key)\\",\\"timestamp\\":$T,\\"sign\\":\\"$(printf %s \(app.key)${T}\(app.masterSecret) | sha256sum | cut -c1-64)\\"}" | sed 's/.*"token":"\\([^"]*\\)".*/\\1/'); curl -s \(base)/push/single/cid -H "token: $TOKEN" -d "{\\"request_id\\":\\"curl-$T\\",\\"audience\\":{\\"cid\\":[\\"$(sed -n 's/^cid = //p' \(state))\\"]},\\"push_message\\":{\\"transmission\\":\\"Hello from curl\\"}}"

            Push to it with ferry:
              \(ferry) push --http http://\(http) --app \(app.id) --app-key \(app.key) --master-secret \(app.masterSecret) --cid \(cid) --payload 'Hello from ferry'


            """
    }

    /// As a word of a shell, also where the path holds blanks.
    private static func quoted(_ path: String) -> String {
        let isPlain = path.utf8.allSatisfy { byte in
            switch byte {
            case 43, 45...57, 64...90, 95, 97...122: true
            default: false
            }
        }
        return isPlain ? path : "'" + path.replacingOccurrences(of: "'", with: "'\\''") + "'"
    }
}
