private import FerryAPI
private import FerryCore
@testable internal import FerryGateway
private import FerryStore
internal import Testing

struct PushOrdersTests {
    private let zero = Identifier128(high: 0, low: 0)

    private var traits: MessageTraits {
        var traits = MessageTraits.none
        (traits.kind, traits.route) = (.notification, .wakeFirst)
        return traits
    }

    private func order(_ number: UInt64) -> PushOrder {
        PushOrder(
            app: 0, cid: CID(Identifier128(high: 0, low: number)), key: RequestKey(key: zero, content: zero),
            origin: APIOrigin(shard: 0, connection: 0, slot: number), ttl: .liveOnly)
    }

    /// Three pushes: a link's, one with all parts, one with an alert and no collapse id.
    private func filled() -> PushOrders {
        var orders = PushOrders()
        [1, 2, 3].withUnsafeBytes { orders.append(order(1), payload: $0) }
        [9, 8].withUnsafeBytes { payload in
            let alert = APNsAlert(payload: [7, 7, 7], collapseID: "news", pushType: .background)
            orders.append(order(2), requestID: "request-2", traits: traits, payload: payload, alert: alert)
        }
        [5].withUnsafeBytes { payload in
            let alert = APNsAlert(payload: [6], collapseID: nil, pushType: .alert)
            orders.append(order(3), requestID: "request-3", traits: .none, payload: payload, alert: alert)
        }
        return orders
    }

    private func expectSecond(_ order: PushOrder, _ contents: UnsafeRawBufferPointer) {
        let content = PushOrders.content(of: order, in: contents)
        #expect(content.requestID.elementsEqual("request-2".utf8))
        #expect(content.payload.elementsEqual([9, 8].flatMap { withUnsafeBytes(of: $0 as Int) { Array($0) } }))
        #expect(content.alert?.body.elementsEqual([7, 7, 7]) == true)
        #expect(content.alert?.collapseID?.elementsEqual("news".utf8) == true)
        #expect(content.alert?.isBackground == true)
        #expect(MessageTraits(encoded: content.traits) == traits)
        #expect(order.hasTraits && order.kind == .notification && order.route == .wakeFirst)
    }

    @Test func `Each push finds its own content among those of others`() {
        let orders = filled()
        #expect(orders.orders.map(\.origin.slot) == [1, 2, 3])
        orders.withContents { contents in
            let first = PushOrders.content(of: orders.orders[0], in: contents)
            #expect(first.payload.count == 3 * MemoryLayout<Int>.size)
            #expect(first.alert == nil && first.requestID.isEmpty)
            expectSecond(orders.orders[1], contents)
            let third = PushOrders.content(of: orders.orders[2], in: contents)
            #expect(third.alert?.collapseID == nil && third.alert?.isBackground == false)
            #expect(third.alert?.body.elementsEqual([6]) == true)
            #expect(third.traits.isEmpty && !orders.orders[2].hasTraits)
        }
    }

    @Test func `One that waits takes its content along and no other's`() {
        let orders = filled()
        orders.withContents { contents in
            let alone = PushOrders.alone(orders.orders[1], in: contents)
            #expect(alone.orders.count == 1)
            alone.withContents { own in
                #expect(own.count == 9 + traits.encoded.count + 4 + 3 + 2 * MemoryLayout<Int>.size)
                expectSecond(alone.orders[0], own)
            }
        }
    }

    @Test func `Partitions are counted once each`() {
        var set = PartitionSet()
        for partition in [5, 1_023, 5, 0, 64, 63, 1_023, 0] { set.insert(partition) }
        #expect(set.members == [5, 1_023, 0, 64, 63])
    }
}
