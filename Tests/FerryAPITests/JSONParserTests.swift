private import FerryAPI
private import FerryCore
internal import Testing

struct JSONParserTests {
    private let parser = JSONParser(maximumBytes: 4096)

    private func read<Answer>(_ text: String, _ body: (JSONValue) -> Answer) -> Result<Answer, JSONFault> {
        parser.withParsed(Array(text.utf8), body)
    }

    private func fault(_ bytes: [UInt8]) -> JSONFault? {
        guard case .failure(let fault) = parser.withParsed(bytes, { _ in }) else { return nil }
        return fault
    }

    private func fault(_ text: String) -> JSONFault? { fault(Array(text.utf8)) }

    private func value(_ member: JSONValue.Member) -> JSONValue? {
        guard case .value(let value) = member else { return nil }
        return value
    }

    @Test func `a long text leaves the parser as it was, its limit of depth included`() throws {
        let parser = JSONParser(maximumBytes: 1 << 20)
        let deep = String(repeating: "[", count: JSONParser.maximumDepth + 1) + String(repeating: "]", count: 65)
        for _ in 0..<3 {
            let long = Array("[\"\(String(repeating: "x", count: 600_000))\"]".utf8)
            #expect(try parser.withParsed(long) { $0.elements?.count(where: { $0.kind == .string }) }.get() == 1)
            guard case .failure(.syntax) = parser.withParsed(long.dropLast() + [0x7d], { _ in }) else {
                Issue.record("a long text with a fault")
                return
            }
            guard case .failure(.tooDeep) = parser.withParsed(Array(deep.utf8), { _ in }) else {
                Issue.record("a deep text")
                return
            }
            #expect(try parser.withParsed(Array("[1]".utf8)) { $0.kind }.get() == .array)
        }
    }

    @Test func `members are found by their names and kinds are told apart`() throws {
        let text = #"{"s":"x","i":-3,"u":18446744073709551615,"d":1.5,"t":true,"a":[1],"o":{},"n":null}"#
        let kinds = try read(text) { root in
            [value(root.member("s")), value(root.member("i")), value(root.member("u")), value(root.member("d"))]
                .map { $0?.kind }
                + [value(root.member("t")), value(root.member("a")), value(root.member("o"))].map { $0?.kind }
        }.get()
        #expect(kinds == [.string, .integer, .number, .number, .bool, .array, .object])
        let absent = try read(text) { root in value(root.member("n")) == nil && value(root.member("z")) == nil }.get()
        #expect(absent)
        #expect(try read(text) { value($0.member("i"))?.int64 }.get() == -3)
        #expect(try read(text) { value($0.member("u"))?.int64 }.get() == nil)
        #expect(try read(text) { value($0.member("d"))?.int64 }.get() == nil)
        #expect(try read(text) { value($0.member("t"))?.bool }.get() == true)
        #expect(try read(text) { value($0.member("s"))?.int64 }.get() == nil)
        #expect(try read("[1]") { value($0.member("s")) == nil }.get())
    }

    @Test func `a name that stands twice is a duplicate, however it is spelled`() throws {
        for text in [#"{"a":1,"a":1}"#, #"{"a":1,"b":[{"a":2}],"\u0061":null}"#] {
            let isDuplicate = try read(text) { root in
                if case .duplicate = root.member("a") { true } else { false }
            }.get()
            #expect(isDuplicate, "\(text)")
        }
        let once = try read(#"{"b":{"a":1},"a":2,"aa":3}"#) { value($0.member("a"))?.int64 }.get()
        #expect(once == 2)
    }

    @Test(
        arguments: [
            (#""a\"\\\/\b\f\n\r\t""#, "a\"\\/\u{8}\u{c}\n\r\t"), (#""\u4f60\ud83d\ude00""#, "你😀"),
            (#""a\u0000b""#, "a\u{0}b"), (#""""#, ""), ("\"\u{7f}é\"", "\u{7f}é"),
        ] as [(String, String)])
    func `escapes of a string are resolved`(text: String, expected: String) throws {
        #expect(try read(text) { $0.string }.get() == expected)
        #expect(try read(text) { $0.stringBytes }.get() == Array(expected.utf8))
    }

    @Test func `a lone surrogate is no text`() {
        for text in [#""\ud800""#, #""\udc00""#, #""\udc00\ud800""#, #""\ud800\u0041""#, #""\ud800\ud800""#] {
            #expect(fault(text) == .string, "\(text)")
            #expect(fault("{\(text):1}") == .string, "\(text)")
        }
    }

    @Test func `what is not JSON is refused with the reason`() {
        #expect(fault("") == .empty)
        #expect(fault("  \n ") == .empty)
        #expect(fault([0x22, 0xff, 0x22]) == .notUTF8)
        #expect(fault([0x22, 0xed, 0xa0, 0x80, 0x22]) == .notUTF8)
        #expect(fault([0x22, 0xc0, 0x80, 0x22]) == .notUTF8)
        #expect(fault("1e400") == .number)
        #expect(fault("-01") == .number)
        #expect(fault(#"{"a":123456789012345678901234567890}"#) == .number)
        #expect(fault(#""\x""#) == .string)
        #expect(fault("\"a\nb\"") == .string)
        #expect(fault(#""a"#) == .string)
        #expect(fault([0x22, 0x00, 0x22]) == .string)
        let broken = [
            "{", "{}}", "{} {}", "{\"a\" 1}", "{a:1}", "[1,]", "nul", "null ,", "'a'", "{\"a\":}", "\u{feff}{}",
        ]
        for text in broken {
            #expect(fault(text) != nil, "\(text)")
        }
    }

    @Test func `texts nest to the limit and are as long as the limit`() {
        let depth = JSONParser.maximumDepth
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(fault(nested(depth)) == nil)
        #expect(fault(nested(depth + 1)) == .tooDeep)
        #expect(fault(String(repeating: "[", count: 4000)) != nil)
        #expect(fault("\"" + String(repeating: "a", count: 4094) + "\"") == nil)
        #expect(fault("\"" + String(repeating: "a", count: 4095) + "\"") == .tooLarge)
    }

    @Test func `the depth limit stays when the parser grows`() {
        let large = JSONParser(maximumBytes: 1 << 20)
        let text = "\"" + String(repeating: "a", count: 500_000) + "\""
        guard case .success = large.withParsed(Array(text.utf8), { _ in }) else {
            Issue.record("a long string was refused")
            return
        }
        let deep = Array(String(repeating: "[", count: 65).utf8) + Array(String(repeating: "]", count: 65).utf8)
        guard case .failure(.tooDeep) = large.withParsed(deep, { _ in }) else {
            Issue.record("the depth limit was lost")
            return
        }
    }

    @Test func `no prefix and no corrupted byte of a text traps, and a good text still reads after each`() throws {
        let sample = Array(#"{"a":["x\u00e9\n",-1.5e3,null,{"b":true}],"c":{}}"#.utf8)
        for count in 0..<sample.count { #expect(fault(Array(sample[..<count])) != nil) }
        for position in sample.indices {
            for change in [1, 0x20, 0x80] as [UInt8] {
                var bytes = sample
                bytes[position] ^= change
                _ = parser.withParsed(bytes) { root in
                    _ = root.minified
                    _ = value(root.member("a"))?.elements?.map { ($0.kind, $0.string, $0.int64) }
                }
            }
        }
        #expect(try parser.withParsed(sample) { $0.minified }.get() != nil)
    }

    @Test func `elements come in order and can be walked again`() throws {
        let numbers = try read("[3, 1, [9, 9], 2]") { $0.elements.map { $0.map(\.int64) } }.get()
        #expect(numbers == [3, 1, nil, 2])
        #expect(try read("{}") { $0.elements == nil }.get())
        #expect(try read("[]") { $0.elements.map { Array($0).count } }.get() == 0)
    }

    @Test func `a value is written without white space`() throws {
        let text = #"{ "a" : [ 1 , "x\n\"é" , true , null ] , "b" : { } }"#
        #expect(try read(text) { $0.minified }.get() == Array(#"{"a":[1,"x\n\"é",true,null],"b":{}}"#.utf8))
        #expect(try read(text) { value($0.member("b"))?.minified }.get() == Array("{}".utf8))
    }

    @Test func `what the writer writes the parser reads`() throws {
        let scalars = (0...0x24f).compactMap(UnicodeScalar.init).map(Character.init) + ["\u{2028}", "😀", "\u{fffd}"]
        var writer = JSONWriter()
        writer.beginArray()
        writer.string(String(scalars))
        writer.integer(.min)
        writer.beginObject()
        writer.name("a\"" as String)
        writer.string("b")
        writer.member("c", 1)
        writer.name("d")
        writer.beginArray()
        writer.endArray()
        writer.endObject()
        writer.beginObject()
        writer.endObject()
        writer.endArray()
        let read = try parser.withParsed(writer.bytes) { root in
            root.elements.map { elements in elements.map { ($0.string, $0.int64, $0.minified) } } ?? []
        }.get()
        try #require(read.count == 4)
        #expect(read[0].0 == String(scalars))
        #expect(read[1].1 == .min)
        #expect(read[2].2 == Array(#"{"a\"":"b","c":1,"d":[]}"#.utf8))
        #expect(read[3].2 == Array("{}".utf8))
    }
}
