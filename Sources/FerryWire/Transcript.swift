internal import FerryCore

/// The bytes that the proofs of a handshake are made over (HMAC-SHA-256, computed by the caller): a label, then each
/// body with its length as 4 bytes before it. The label keeps one proof from being passed off as another; the lengths keep
/// bytes from moving between bodies. Bodies are as they travelled; "signed part" is a body without its last 32 bytes.
package enum Transcript {
    /// Key: the device's secret.
    package static func login(
        hello: some Collection<UInt8>, challenge: some Collection<UInt8>, signedPart: some Collection<UInt8>
    ) -> [UInt8] {
        var writer = begin("ferry/1 login", hello, challenge)
        append(signedPart, to: &writer)
        return writer.bytes
    }

    /// Key: the app secret's UTF-8 bytes.
    package static func register(
        hello: some Collection<UInt8>, challenge: some Collection<UInt8>, signedPart: some Collection<UInt8>
    ) -> [UInt8] {
        var writer = begin("ferry/1 register", hello, challenge)
        append(signedPart, to: &writer)
        return writer.bytes
    }

    /// Key: the app secret's UTF-8 bytes. `register` is the whole body.
    package static func registered(
        hello: some Collection<UInt8>, challenge: some Collection<UInt8>, register: some Collection<UInt8>,
        signedPart: some Collection<UInt8>
    ) -> [UInt8] {
        var writer = begin("ferry/1 registered", hello, challenge)
        append(register, to: &writer)
        append(signedPart, to: &writer)
        return writer.bytes
    }

    /// Key: the device's secret. `request` is the whole body of the login or register.
    package static func welcome(
        hello: some Collection<UInt8>, challenge: some Collection<UInt8>, request: some Collection<UInt8>,
        signedPart: some Collection<UInt8>
    ) -> [UInt8] {
        var writer = begin("ferry/1 welcome", hello, challenge)
        append(request, to: &writer)
        append(signedPart, to: &writer)
        return writer.bytes
    }

    /// Key: the app's master secret's UTF-8 bytes.
    package static func linkLogin(
        hello: some Collection<UInt8>, challenge: some Collection<UInt8>, signedPart: some Collection<UInt8>
    ) -> [UInt8] {
        var writer = begin("ferry/1 link-login", hello, challenge)
        append(signedPart, to: &writer)
        return writer.bytes
    }

    /// Key: the app's master secret's UTF-8 bytes. `login` is the whole body of the link-login.
    package static func linkWelcome(
        hello: some Collection<UInt8>, challenge: some Collection<UInt8>, login: some Collection<UInt8>,
        signedPart: some Collection<UInt8>
    ) -> [UInt8] {
        var writer = begin("ferry/1 link-welcome", hello, challenge)
        append(login, to: &writer)
        append(signedPart, to: &writer)
        return writer.bytes
    }

    private static func begin(
        _ label: StaticString, _ hello: some Collection<UInt8>, _ challenge: some Collection<UInt8>
    ) -> ByteWriter {
        var writer = ByteWriter()
        label.withUTF8Buffer { writer.raw($0) }
        append(hello, to: &writer)
        append(challenge, to: &writer)
        return writer
    }

    private static func append(_ body: some Collection<UInt8>, to writer: inout ByteWriter) {
        writer.uint32(UInt32(truncatingIfNeeded: body.count))
        writer.raw(body)
    }
}
