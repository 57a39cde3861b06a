internal import Foundation

/// A backend's endpoint for receipts, in a process of its own: `Tests/ReceiptEndpoint/endpoint.py`.
final class ReceiptEndpoint {
    /// One line that was sent to it.
    struct Line {
        let fields: [String: Any]
        let answer: String

        var event: String? { fields["event"] as? String }
        var code: Int? { fields["code"] as? Int }
        var task: String? { fields["taskid"] as? String }
        var cid: String? { fields["cid"] as? String }
    }

    private let child: Child
    let port: Int
    private let scheme: String
    private var lines: [Line] = []
    /// Requests until now.
    private(set) var requests = 0

    var url: String { "\(scheme)://localhost:\(port)/receipts" }

    init(port: Int = 0, certificate: (file: String, key: String)? = nil) async throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let script = tests.appendingPathComponent("ReceiptEndpoint/endpoint.py").path
        scheme = certificate == nil ? "http" : "https"
        child = try Child(
            [script, "--port", String(port)] + (certificate.map { ["--tls", $0.file, $0.key] } ?? []),
            executable: "/usr/bin/python3", environment: ["PYTHONDONTWRITEBYTECODE": "1"], input: [], endsInput: false)
        guard let line = try await child.line(),
            let port = (try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])?["port"] as? Int
        else { throw Unexpected("the endpoint did not start: \(child.errorText)") }
        self.port = port
    }

    /// From now on it answers so; what it got before is in `lines` first.
    func answer(_ mode: String) async throws {
        child.write(Array((mode + "\n").utf8))
        while try await takeOutput() != mode {}
    }

    /// The next line, of whatever request.
    func next() async throws -> Line {
        while lines.isEmpty { _ = try await takeOutput() }
        return lines.removeFirst()
    }

    /// The next lines that it answered with 200.
    func taken(_ count: Int) async throws -> [Line] {
        var taken: [Line] = []
        while taken.count < count {
            let line = try await next()
            if line.answer == "status 200" { taken.append(line) }
        }
        return taken
    }

    private func takeOutput() async throws -> String? {
        guard let line = try await child.line(),
            let said = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        else { throw Unexpected("the endpoint has ended: \(child.errorText)") }
        if let mode = said["mode"] as? String { return mode }
        requests += 1
        for text in said["lines"] as? [String] ?? [] {
            guard let fields = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] else {
                throw Unexpected("no receipt: \(text)")
            }
            lines.append(Line(fields: fields, answer: said["answer"] as? String ?? ""))
        }
        return nil
    }

    /// A certificate for `localhost` that signs itself, in `folder`.
    static func certificate(in folder: String) throws -> (file: String, key: String) {
        let (file, key) = (folder + "/endpoint.pem", folder + "/endpoint.key")
        let tool = Process()
        tool.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        tool.arguments = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", file,
        ]
        tool.standardError = FileHandle.nullDevice
        try tool.run()
        tool.waitUntilExit()
        guard tool.terminationStatus == 0 else { throw Unexpected("openssl made no certificate") }
        return (file, key)
    }
}
