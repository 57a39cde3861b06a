private import FerryCore
private import FerryWire
internal import Testing

struct MalformedTests {
    private enum Direction { case toGateway, toDevice }

    private func samples() throws -> [(Direction, [UInt8])] {
        try Samples.deviceFrames().map { (.toGateway, $0.encoded()) }
            + Samples.gatewayFrames().map { (.toDevice, $0.encoded()) }
    }

    private func decode(_ direction: Direction, _ type: UInt8, _ body: [UInt8]) -> WireError? {
        switch direction {
        case .toGateway: if case .failure(let error) = Samples.device(type, body) { return error }
        case .toDevice: if case .failure(let error) = Samples.gateway(type, body) { return error }
        }
        return nil
    }

    @Test func `every prefix of a frame is incomplete`() throws {
        for (_, bytes) in try samples() {
            for count in 0..<bytes.count {
                let isIncomplete = bytes[..<count].withUnsafeBytes {
                    if case .incomplete = FrameSplitter.split($0, bodyLimit: Limits.gatewayFrameBytes) {
                        true
                    } else {
                        false
                    }
                }
                #expect(isIncomplete)
            }
        }
    }

    @Test func `a body that is cut anywhere is refused or means something shorter`() throws {
        for (direction, bytes) in try samples() {
            let (type, body) = try #require(Samples.open(bytes))
            for count in 0..<body.count {
                if let error = decode(direction, type, Array(body[..<count])) {
                    #expect(error.code == .protocolError || error.code == .fieldOutOfRange)
                }
            }
            if !body.isEmpty { #expect(decode(direction, type, [])?.code == .protocolError) }
        }
    }

    @Test func `no change of one byte traps`() throws {
        var refused = 0
        for (direction, bytes) in try samples() {
            let (type, body) = try #require(Samples.open(bytes))
            for index in body.indices {
                for value in [0, 1, 0x7f, 0x80, 0xff, body[index] ^ 1, body[index] ^ 0x80] as [UInt8] {
                    var changed = body
                    changed[index] = value
                    if decode(direction, type, changed) != nil { refused += 1 }
                }
            }
            for type in UInt8.min...UInt8.max where decode(direction, type, body) != nil { refused += 1 }
        }
        #expect(refused > 1_000)
    }

    @Test func `types of the other direction and unknown ones that must be understood are protocol errors`() {
        for type in UInt8.min...UInt8.max {
            let known = FrameType(rawValue: type)
            let device = Samples.device(type, [])
            let gateway = Samples.gateway(type, [])
            if let known, !known.isOfLinks {
                if !known.isFromDevice { #expect(decode(.toGateway, type, [])?.code == .protocolError) }
                if !known.isFromGateway { #expect(decode(.toDevice, type, [])?.code == .protocolError) }
            } else if type < 0x80 {
                #expect(device == .success(.unknownSkippable(type)))
                #expect(gateway == .success(.unknownSkippable(type)))
            } else {
                #expect(decode(.toGateway, type, [])?.code == .protocolError)
                #expect(decode(.toDevice, type, [])?.code == .protocolError)
            }
        }
    }

    @Test func `strings at their limit pass and one byte more is out of range`() throws {
        for (count, code) in [(65_536, nil), (65_537, CloseCode.fieldOutOfRange)] {
            let push = PushFrame(
                seq: Seq(1), messageID: MessageID(Samples.identifier), taskID: "t",
                payload: [UInt8](repeating: 1, count: count))
            #expect(decode(.toDevice, FrameType.push.rawValue, push.body())?.code == code)
        }
        for (count, code) in [(64, nil), (65, CloseCode.fieldOutOfRange)] {
            let push = PushFrame(
                seq: Seq(1), messageID: MessageID(Samples.identifier), taskID: String(repeating: "t", count: count),
                payload: [])
            #expect(decode(.toDevice, FrameType.push.rawValue, push.body())?.code == code)
            #expect(decode(.toGateway, FrameType.register.rawValue, register(appCount: count))?.code == code)
            #expect(decode(.toGateway, FrameType.register.rawValue, register(infoCount: count))?.code == code)
        }
        for (count, code) in [(128, nil), (129, CloseCode.fieldOutOfRange)] {
            var writer = ByteWriter([2])
            writer.string([UInt8](repeating: 1, count: count))
            #expect(decode(.toGateway, FrameType.deviceToken.rawValue, writer.bytes)?.code == code)
            #expect(decode(.toGateway, FrameType.register.rawValue, register(tokenCount: count))?.code == code)
        }
        for (count, code) in [(256, nil), (257, CloseCode.fieldOutOfRange)] {
            var writer = ByteWriter([1])
            writer.string([UInt8](repeating: 0x61, count: count))
            writer.varint(0)
            #expect(decode(.toDevice, FrameType.close.rawValue, writer.bytes)?.code == code)
        }
    }

    private func register(appCount: Int = 1, infoCount: Int? = nil, tokenCount: Int? = nil) -> [UInt8] {
        var writer = ByteWriter()
        writer.string([UInt8](repeating: 0x61, count: appCount))
        writer.raw([UInt8](repeating: 0, count: 32 + 3))
        if let tokenCount {
            writer.varint(1)
            writer.string([1] + [UInt8](repeating: 9, count: tokenCount))
        }
        if let infoCount {
            writer.varint(2)
            writer.string([UInt8](repeating: 0x62, count: infoCount))
        }
        writer.raw([UInt8](repeating: 0, count: 32))
        return writer.bytes
    }

    @Test func `a token's environment and size must go together`() {
        let cases: [([UInt8], CloseCode?)] = [
            ([0, 0], nil), ([1, 1, 7], nil), ([2, 1, 7], nil), ([0, 1, 7], .fieldOutOfRange),
            ([1, 0], .fieldOutOfRange),
            ([3, 1, 7], .fieldOutOfRange), ([1], .protocolError), ([1, 2, 7], .protocolError),
        ]
        for (body, code) in cases {
            #expect(decode(.toGateway, FrameType.deviceToken.rawValue, body)?.code == code)
        }
    }

    @Test func `unknown extensions are skipped, and one that runs over the end is a protocol error`() throws {
        for (direction, bytes) in try samples() {
            let (type, body) = try #require(Samples.open(bytes))
            let isSigned = [FrameType.login, .register, .registered, .welcome].contains { $0.rawValue == type }
            let split = body.count - (isSigned ? 32 : 0)
            for (addition, code) in [
                ([0x63, 2, 1, 1, 0x64, 0], nil), ([0x63, 3, 1, 1], CloseCode.protocolError), ([0x63], .protocolError),
                ([0x63, 0x80], .protocolError), ([0x80, 0, 0], .protocolError),
            ] as [([UInt8], CloseCode?)] {
                let changed = Array(body[..<split]) + addition + Array(body[split...])
                #expect(decode(direction, type, changed)?.code == code)
            }
        }
    }

    @Test func `of a repeated extension the first counts`() throws {
        let app = try #require(AppID("a"))
        var first = RegisterFrame(appID: app, installationKey: .zero)
        first.extensions.clientInfo = "first"
        let body = first.signedPart() + [2, 1, 0x78] + [UInt8](repeating: 0, count: 32)
        guard case .register(let read) = try Samples.device(FrameType.register.rawValue, body).get() else {
            Issue.record("not a register")
            return
        }
        #expect(read.extensions.clientInfo == "first")
    }
}
