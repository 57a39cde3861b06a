internal import FerryCore
internal import FerryWire
internal import Foundation
internal import Testing

/// Compares the constants of the code with `protocol-spec/registry`.
@Suite(.enabled(if: ProtocolSpec.folder != nil))
struct RegistryTests {
    private func rows(_ file: String, _ key: String) throws -> [[String: Any]] {
        try Samples.unwrap(try ProtocolSpec.json("registry/\(file).json")[key] as? [[String: Any]])
    }

    @Test func `the limits are the registry's`() throws {
        var registered: [String: UInt64] = [:]
        for row in try rows("limits", "limits") {
            registered[try #require(row["name"] as? String)] = UInt64(try #require(row["value"] as? Int))
        }
        let ours: [String: UInt64] = [
            "payloadBytes": UInt64(Limits.payloadBytes), "gatewayFrameBytes": UInt64(Limits.gatewayFrameBytes),
            "deviceFrameBytes": UInt64(Limits.deviceFrameBytes), "pushTokenBytes": UInt64(Limits.pushTokenBytes),
            "appIdBytes": UInt64(WireLimits.appIDBytes), "taskIdBytes": UInt64(WireLimits.taskIDBytes),
            "closeTextBytes": UInt64(WireLimits.closeTextBytes), "clientInfoBytes": UInt64(WireLimits.clientInfoBytes),
            "windowDefault": WireLimits.windowDefault, "windowMaximum": WireLimits.windowMaximum,
            "windowBytesDefault": WireLimits.windowBytesDefault, "compressionBytes": WireLimits.compressionBytes,
            "keepAliveDefaultSeconds": WireLimits.keepAliveDefaultSeconds,
            "keepAliveMinimumSeconds": WireLimits.keepAliveMinimumSeconds,
            "keepAliveMaximumSeconds": WireLimits.keepAliveMaximumSeconds,
            "handshakeSeconds": WireLimits.handshakeSeconds, "ackDeadlineSeconds": WireLimits.ackDeadlineSeconds,
            "acknowledgementSeconds": WireLimits.acknowledgementSeconds,
            "reattachGraceSeconds": WireLimits.reattachGraceSeconds, "linkFrameBytes": UInt64(Limits.linkFrameBytes),
            "apnsPayloadBytes": UInt64(Limits.apnsPayloadBytes), "collapseIdBytes": UInt64(Limits.collapseIDBytes),
            "linkTextBytes": UInt64(WireLimits.linkTextBytes), "linkWindowDefault": WireLimits.linkWindowDefault,
            "linkWindowBytesDefault": WireLimits.linkWindowBytesDefault,
            "linkKeepAliveSeconds": WireLimits.linkKeepAliveSeconds,
        ]
        for (name, value) in ours { #expect(registered[name] == value, "\(name)") }
    }

    @Test func `the bits of flags and capabilities are the registry's`() throws {
        var ours: [String: Set<UInt64>] = [:]
        for name in ["login", "register"] {
            ours[name] = Set([AttachWishes.Capabilities.compressedPayloads, .typedContents].map(\.rawValue))
        }
        ours["push"] = Set([PushFrame.Flags.offLine, .compressed].map { UInt64($0.rawValue) })
        for kind in ContentKind.allCases where kind != .transmission {
            ours["push"]?.insert(UInt64(PushFrame.Flags(kind, isOffLine: false).rawValue))
        }
        // The others are fields of their own here: what they write is what counts.
        let plain = WelcomeFrame(sessionID: SessionID(rawValue: 0), epoch: .none, isResumed: false)
        var resumed = plain
        resumed.isResumed = true
        var compressing = plain
        compressing.compressesPayloads = true
        ours["welcome"] = Set([resumed, compressing].map { UInt64($0.body()[16] ^ plain.body()[16]) })
        ours["resumed"] = [UInt64(ResumedFrame(sessionID: SessionID(rawValue: 0), isResumed: true).body()[8])]
        var registered: [String: Set<UInt64>] = [:]
        for row in try rows("flags", "bits") {
            let bit = try #require(row["bit"] as? Int)
            for frame in try #require(row["frames"] as? [String]) { registered[frame, default: []].insert(1 << bit) }
        }
        #expect(registered == ours)
    }

    @Test func `the close codes are the registry's`() throws {
        let codes = try rows("close-codes", "codes").map { UInt16(try Samples.unwrap($0["code"] as? Int)) }
        #expect(Set(codes) == Set(CloseCode.all.map(\.rawValue)))
    }

    @Test func `the frame types and who sends them are the registry's`() throws {
        let frames = try rows("frame-types", "frames")
        let links = Set(try rows("frame-types", "linkFrames").compactMap { $0["type"] as? Int })
        #expect(links == Set(FrameType.allCases.filter(\.isOfLinks).map { Int($0.rawValue) }))
        #expect(
            links.union(frames.compactMap { $0["type"] as? Int }) == Set(FrameType.allCases.map { Int($0.rawValue) }))
        for frame in frames {
            let type = try Samples.unwrap(FrameType(rawValue: UInt8(try Samples.unwrap(frame["type"] as? Int))))
            let direction = try #require(frame["direction"] as? String)
            #expect(type.isFromDevice == (direction != "toDevice"), "\(type)")
            #expect(type.isFromGateway == (direction != "toGateway"), "\(type)")
        }
    }

    @Test func `the gap reasons are the registry's`() throws {
        let codes = try rows("gap-reasons", "reasons").map { UInt64(try Samples.unwrap($0["code"] as? Int)) }
        #expect(codes == GapReason.allCases.map(\.rawValue))
    }
}
