@testable internal import FerryAudience
internal import FerryCore
internal import FerryTestSupport
internal import Testing

func cid(_ number: UInt64) -> CID { CID(Identifier128(high: number &* 0x9e37_79b9_7f4a_7c15, low: number)) }

@Suite struct OrderedDevicesTests {
    @Test(arguments: Effort.seeds(20))
    func `it holds what a dictionary holds, in the order of cids`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        var devices = OrderedDevices<Int>()
        var model: [CID: Int] = [:]
        for step in 0..<4_000 {
            let device = cid(UInt64.random(in: 0..<900, using: &random))
            if let place = devices.place(of: device) {
                #expect(devices[place].value == model[device])
                if Bool.random(using: &random) {
                    #expect(devices.remove(device) == model.removeValue(forKey: device))
                } else {
                    devices[place].value = step
                    model[device] = step
                }
            } else {
                #expect(model[device] == nil)
                #expect(devices.remove(device) == nil)
                devices.insert(device, step)
                model[device] = step
            }
            #expect(devices.count == model.count)
        }
        var walked: [CID] = []
        var next = devices.place(after: nil)
        while let place = next {
            walked.append(devices[place].cid)
            next = devices.place(after: place)
        }
        #expect(walked == model.keys.sorted())
        for device in (0..<900).map({ cid($0) }) {
            #expect(devices.place(after: device).map { devices[$0].cid } == walked.first { device < $0 })
        }
    }

    @Test func `what comes in order is found again`() {
        var devices = OrderedDevices<Void>()
        for number in 0..<5_000 as Range<UInt64> { devices.insert(CID(Identifier128(high: number, low: 0)), ()) }
        #expect((0..<5_000).allSatisfy { devices.place(of: CID(Identifier128(high: $0, low: 0))) != nil })
        #expect(devices.place(of: CID(Identifier128(high: 5_000, low: 0))) == nil)
    }
}
