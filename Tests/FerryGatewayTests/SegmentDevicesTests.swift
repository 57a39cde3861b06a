@testable internal import FerryGateway
internal import Testing

struct SegmentDevicesTests {
    @Test func `A retirement takes who has something in its segment or in one before, and nobody else`() {
        var devices = SegmentDevices()
        for (device, segment) in [(1, 4), (2, 4), (1, 5), (3, 7), (4, 5), (5, 3)] as [(Int, UInt32)] {
            devices.add(device, segment: segment)
        }
        var taken = devices.take(upTo: 2)
        #expect(taken == [])
        taken = devices.take(upTo: 4)
        #expect(taken == [5, 1, 2])
        #expect(devices.count == 3)
        devices.add(6, segment: 4)
        taken = devices.take(upTo: 6)
        #expect(taken == [6, 1, 4])
        taken = devices.take(upTo: .max)
        #expect(taken == [3])
        #expect(devices.count == 0)
    }

    @Test func `A number is seen for the first time once, and one beyond the bound never`() {
        var seen = SeenNumbers(below: 130)
        for number in [0, 63, 64, 129] {
            let times = [seen.insert(number), seen.insert(number)]
            #expect(times == [true, false])
        }
        let beyond = [seen.insert(-1), seen.insert(192)]
        #expect(beyond == [false, false])
    }
}
