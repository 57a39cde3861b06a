internal import FerryCore
internal import FerryIO
internal import FerryTestSupport
internal import FerryWire
internal import Foundation
internal import Testing

struct DeflateTests {
    private struct NoMemory: Error {}

    private func made(_ level: Int) throws -> Deflater {
        guard let deflater = Deflater(level: level) else { throw NoMemory() }
        return deflater
    }

    private func inflate(_ stream: [UInt8], _ count: Int) -> [UInt8]? {
        stream.withUnsafeBytes { Inflation.inflate($0, count: count) }
    }

    private func deflate(_ content: [UInt8], _ deflater: inout Deflater, room: Int? = nil) -> [UInt8]? {
        var output = [UInt8](repeating: 0, count: room ?? content.count + content.count / 1_000 + 64)
        let length = content.withUnsafeBytes { content in
            output.withUnsafeMutableBytes { deflater.compress(content, into: $0) }
        }
        return length.map { Array(output[..<$0]) }
    }

    private func text(_ count: Int, _ random: inout SplitMix) -> [UInt8] {
        (0..<count).map { _ in UInt8(97 + random.next() % 6) }
    }

    @Test(arguments: 1...9)
    func `what was compressed comes back, whatever was compressed before`(level: Int) throws {
        var random = SplitMix(seed: UInt64(level))
        var deflater = try made(level)
        for count in [0, 1, 2, 100, 1_024, 5_000, 32_768, 32_769, 65_536] {
            let content = text(count, &random)
            let stream = try #require(deflate(content, &deflater))
            #expect(inflate(stream, count) == content)
            // Nothing of one is left for the next.
            var fresh = try made(level)
            #expect(deflate(content, &fresh) == stream)
        }
    }

    @Test func `what does not fit is not written, and does not disturb the next`() throws {
        var random = SplitMix(seed: 1)
        var deflater = try made(1)
        let noise = (0..<4_096).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        #expect(deflate(noise, &deflater, room: 3_686) == nil)
        #expect(deflate(noise, &deflater, room: 0) == nil)
        let content = text(4_096, &random)
        let stream = try #require(deflate(content, &deflater))
        #expect(deflate(content, &deflater, room: stream.count - 1) == nil)
        #expect(deflate(content, &deflater, room: stream.count) == stream)
        #expect(inflate(stream, content.count) == content)
    }

    @Test func `a stream that is cut, goes on, or makes another count is refused`() throws {
        var random = SplitMix(seed: 2)
        var deflater = try made(6)
        let content = text(700, &random)
        let stream = try #require(deflate(content, &deflater))
        for count in stream.indices { #expect(inflate(Array(stream[..<count]), content.count) == nil) }
        #expect(inflate(stream + [0], content.count) == nil)
        #expect(inflate(stream + stream, content.count) == nil)
        for count in 0...800 where count != content.count { #expect(inflate(stream, count) == nil) }
        #expect(inflate(stream, -1) == nil)
        #expect(inflate([], 0) == nil)
    }

    /// Each byte, each other value. The checksum is a weak one: it lets a few pass, but none of another length.
    @Test func `of the changes of one byte nearly all are refused`() throws {
        var random = SplitMix(seed: 3)
        var deflater = try made(1)
        let content = text(200, &random)
        let stream = try #require(deflate(content, &deflater))
        var wrong = 0
        for index in stream.indices {
            for value in UInt8.min...UInt8.max where value != stream[index] {
                var changed = stream
                changed[index] = value
                guard let other = inflate(changed, content.count), other != content else { continue }
                wrong += 1
                #expect(other.count == content.count)
            }
        }
        #expect(wrong * 1_000 <= stream.count * 255)
    }

    @Test func `no bytes at all make it trap, or more than was said`() {
        var random = SplitMix(seed: 4)
        for _ in 0..<Effort.scaled(20_000) {
            var bytes = (0..<Int(random.next() % 60)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            if bytes.count > 3, random.next() % 4 > 0 {
                bytes[0] = 0x78
                bytes[1] = 0x01
                bytes[2] = UInt8(truncatingIfNeeded: random.next() % 6)
            }
            let count = Int(random.next() % 300)
            if let made = inflate(bytes, count) { #expect(made.count == count) }
        }
    }

    // MARK: - The protocol's vectors

    private static let vectors: URL? = {
        var place = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        while place.path != "/" {
            let file = place.appendingPathComponent("protocol-spec/vectors/payload/compressed.json")
            if FileManager.default.fileExists(atPath: file.path) { return file }
            place.deleteLastPathComponent()
        }
        return nil
    }()

    private func bytes(_ value: Any?) throws -> [UInt8] {
        if let text = value as? String { return try #require(Hexadecimal.decode(text)) }
        let parts = try #require((value as? [String: Any])?["hexParts"] as? [[Any]])
        return try parts.flatMap { part -> [UInt8] in
            let piece = try #require((part.first as? String).flatMap { Hexadecimal.decode($0) })
            return Array(repeatElement(piece, count: try #require(part.last as? Int)).joined())
        }
    }

    private func unpack(_ payload: [UInt8]) -> Result<[UInt8], WireError> {
        let push = PushFrame(
            seq: Seq(1), flags: .compressed, messageID: MessageID(Identifier128(high: 0, low: 1)), taskID: "t",
            payload: payload)
        do throws(WireError) {
            return .success(try push.unpacked(isAgreed: true, inflate: Inflation.inflate).payload)
        } catch {
            return .failure(error)
        }
    }

    private func cases() throws -> [[String: Any]] {
        let file = try #require(Self.vectors)
        let object = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any]
        return try #require(object?["cases"] as? [[String: Any]])
    }

    @Test func `every vector of a compressed payload is read or refused as it says`() throws {
        let all = try cases()
        #expect(all.count > 30)
        for item in all {
            let name = item["name"] as? String ?? ""
            switch unpack(try bytes(item["hex"])) {
            case .success(let original): #expect(try bytes(item["original"]) == original, "\(name)")
            case .failure(let error): #expect(item["mustFail"] as? Int == Int(error.code.rawValue), "\(name)")
            }
        }
    }

    @Test func `no byte of a vector can be changed so that an app gets something else`() throws {
        for item in try cases() where item["original"] != nil {
            let payload = try bytes(item["hex"])
            let original = try bytes(item["original"])
            let masks: [UInt8] = original.count < 1_000 ? Array(1...255) : [1, 0x10, 0x80, 0xff]
            for index in payload.indices {
                for mask in masks {
                    var changed = payload
                    changed[index] ^= mask
                    if case .success(let made) = unpack(changed) { #expect(made == original) }
                }
            }
        }
    }
}
