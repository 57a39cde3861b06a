internal import FerryCore
internal import FerryIO

/// The least that asks an HTTP API and reads the answer: HTTP/1.1, one connection a request, answers of up to 8 MiB.
struct HTTPRequester {
    struct Problem: Error { let sentence: String }

    struct Answer {
        let status: Int
        let body: [UInt8]
    }

    private let address: SocketAddress
    private let authority: String
    private static let patience: Duration = .seconds(10)
    private static let answerLimit = 8 << 20

    /// Reads `http://HOST[:PORT]`.
    static func make(_ url: String) -> Result<HTTPRequester, Problem> {
        guard url.hasPrefix("http://") else {
            return .failure(Problem(sentence: "\"\(url)\" is not an http:// URL (https is not supported yet)"))
        }
        var authority = String(url.dropFirst(7))
        if authority.hasSuffix("/") { authority.removeLast() }
        let target = authority.contains(":") ? authority : authority + ":80"
        guard let address = SocketAddress(target), address.port != 0 else {
            return .failure(Problem(sentence: "\"\(url)\" is not http://HOST:PORT with an IPv4 address or localhost"))
        }
        return .success(HTTPRequester(address: address, authority: authority))
    }

    func post(_ path: String, json: [UInt8], token: String?) -> Result<Answer, Problem> {
        ask(
            "POST \(path)", ["Content-Type: application/json;charset=utf-8", "Content-Length: \(json.count)"], json,
            token)
    }

    func get(_ path: String, token: String?) -> Result<Answer, Problem> { ask("GET \(path)", [], [], token) }

    private func ask(
        _ call: String, _ fields: [String], _ body: [UInt8], _ token: String?
    ) -> Result<Answer, Problem> {
        var head = ["\(call) HTTP/1.1", "Host: \(authority)", "Connection: close"] + fields
        if let token {
            guard token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
                return .failure(Problem(sentence: "the gateway's token holds characters that no header may"))
            }
            head.append("token: \(token)")
        }
        do throws(SystemError) {
            return try exchange(Array((head.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body)
        } catch {
            return .failure(Problem(sentence: "\(error) (is the gateway running at \(address)?)"))
        }
    }

    private func exchange(_ request: [UInt8]) throws(SystemError) -> Result<Answer, Problem> {
        let clock = WallClock()
        let deadline = clock.now + Self.patience
        let socket = try Socket.connect(to: address)
        defer { Socket.close(socket) }
        let poller = try Poller()
        try poller.add(socket, .writable, token: 0)
        var rest = request[...]
        var answer: [UInt8] = []
        var isConnected = false
        while clock.now < deadline {
            let left = Int32(clamping: (deadline - clock.now).inMilliseconds)
            guard poller.wait(milliseconds: left) > 0 else { continue }
            if !isConnected {
                let code = Socket.error(of: socket)
                if code != 0 { throw SystemError("connect to \(address)", code) }
                isConnected = true
            }
            if !rest.isEmpty {
                switch rest.withUnsafeBytes({ Socket.send(socket, $0) }) {
                case .moved(let count): rest.removeFirst(count)
                case .wouldBlock, .ended: break
                case .failed(let code): throw SystemError("send to \(address)", code)
                }
                if rest.isEmpty { try poller.modify(socket, .readable, token: 0) }
                continue
            }
            var chunk = [UInt8](repeating: 0, count: 65_536)
            switch chunk.withUnsafeMutableBytes({ Socket.receive(socket, into: $0) }) {
            case .wouldBlock: continue
            case .moved(let count):
                answer += chunk[..<count]
                if answer.count > Self.answerLimit { return .failure(Problem(sentence: "the answer is too long")) }
                if let answer = HTTPAnswerReader.read(answer, isEnded: false) { return .success(answer) }
            case .ended:
                if let answer = HTTPAnswerReader.read(answer, isEnded: true) { return .success(answer) }
                return .failure(Problem(sentence: "\(address) hung up before its answer was complete"))
            case .failed(let code): throw SystemError("receive from \(address)", code)
            }
        }
        let seconds = Self.patience.components.seconds
        let doing = isConnected ? "answer" : "accept the connection"
        return .failure(Problem(sentence: "\(address) did not \(doing) within \(seconds) seconds"))
    }
}

/// Finds the status and body in the bytes of an HTTP/1.1 answer.
enum HTTPAnswerReader {
    /// nil while the answer is not complete, or when it is none.
    static func read(_ bytes: [UInt8], isEnded: Bool) -> HTTPRequester.Answer? {
        guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]) else { return nil }
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { continue }
            let value = parts[1].drop { $0 == " " || $0 == "\t" }
            headers[parts[0].lowercased()] = String(value)
        }
        let rest = Array(bytes[end.upperBound...])
        // An interim answer (100 Continue) stands before the real one.
        if (100..<200).contains(status) { return read(rest, isEnded: isEnded) }
        if headers["transfer-encoding"]?.lowercased().hasSuffix("chunked") == true {
            return unchunked(rest).map { HTTPRequester.Answer(status: status, body: $0) }
        }
        if let length = headers["content-length"].flatMap({ Int($0) }), length >= 0 {
            guard rest.count >= length else { return nil }
            return HTTPRequester.Answer(status: status, body: Array(rest[..<length]))
        }
        return isEnded ? HTTPRequester.Answer(status: status, body: rest) : nil
    }

    private static func unchunked(_ bytes: [UInt8]) -> [UInt8]? {
        var body: [UInt8] = []
        var rest = bytes[...]
        while let line = rest.firstRange(of: Array("\r\n".utf8)) {
            let size = String(decoding: rest[rest.startIndex..<line.lowerBound], as: UTF8.self).prefix { $0 != ";" }
            guard let count = Int(size, radix: 16), count >= 0 else { return nil }
            if count == 0 { return body }
            let data = rest[line.upperBound...]
            guard data.count >= 2, count <= data.count - 2 else { return nil }
            body += data.prefix(count)
            rest = data.dropFirst(count + 2)
        }
        return nil
    }
}
