internal import FerryCore
internal import FerryIO

/// One connection that pushes: what is written and has not left, and the due times of what is not answered.
struct BenchBackend {
    var descriptor: Int32
    var output: [UInt8] = []
    var sent = 0
    var input: [UInt8] = []
    var open: [UInt64] = []
    var openHead = 0
    /// With batches: how many messages each of `open` stands for, and what of the next request is written.
    var counts: [Int] = []
    var batch: [UInt8] = []
    var batched = 0
    var batchDue: UInt64 = 0
    var isWaitingToWrite = false
    var isGone = false
    /// Of a link: the number up to which it is answered.
    var linkAnswered: UInt64 = 0

    var inFlight: Int { open.count - openHead }

    mutating func answered() -> UInt64? {
        guard openHead < open.count else { return nil }
        defer {
            openHead += 1
            if openHead == open.count {
                open.removeAll(keepingCapacity: true)
                openHead = 0
            } else if openHead >= 1_024 {
                open.removeFirst(openHead)
                openHead = 0
            }
        }
        return open[openHead]
    }
}

extension BenchLoad {
    mutating func openBackends(token: String) throws(BenchFailure) {
        if let link = settings.link { return try openLinks(link) }
        if settings.ingress == .batch {
            batchTemplate = BenchBatchTemplate(settings, token: token)
        } else {
            template = BenchTemplate(settings, token: token)
        }
        for index in backends.count..<settings.backends {
            do throws(SystemError) {
                let descriptor = try Socket.connect(to: settings.http)
                try poller.add(descriptor, .readable, token: Self.backendBit | UInt64(index))
                backends.append(BenchBackend(descriptor: descriptor))
            } catch {
                throw BenchFailure(sentence: error.description)
            }
        }
    }

    /// All have their answers.
    mutating func closeBackends() {
        for backend in backends where !backend.isGone { Socket.close(backend.descriptor) }
        backends = []
        nextBackend = 0
    }

    func dueTime(_ number: UInt64, _ start: UInt64) -> UInt64 {
        guard isPaced, let rate = settings.rate else { return now }
        return start + UInt64(Double(number) * 1e9 / Double(rate))
    }

    /// Writes what is due and what the limits allow, then sends. One connection is filled before the next is taken, so
    /// that what is due together leaves together.
    mutating func publishDue(first: UInt64, limit: UInt64, start: UInt64, toAll: Bool) {
        var used = -1
        while tally.published - first < limit {
            let due = dueTime(tally.published - first, start)
            if due > now { break }
            if !toAll && settings.rate == nil && tally.outstanding >= UInt64(settings.outstanding) { break }
            guard let backend = freeBackend() else { break }
            if used >= 0 && used != backend { send(used) }
            used = backend
            let device = toAll ? inTurn(tally.published - first) : anyDevice()
            let cid = devices[device].cid
            if let batchTemplate {
                batch(batchTemplate, backend, device: cid, due: due)
                tally.published += 1
                continue
            }
            if let linkTemplate {
                linkTemplate.append(to: &backends[backend].output, number: tally.published, device: cid, due: due)
            } else {
                template?.append(to: &backends[backend].output, number: tally.published, device: cid, due: due)
            }
            backends[backend].open.append(due)
            tally.published += 1
        }
        if used >= 0 {
            send(used)
            nextBackend = (used + 1) % backends.count
        }
    }

    private mutating func batch(_ template: BenchBatchTemplate, _ index: Int, device: Identifier128, due: UInt64) {
        if backends[index].batched == 0 { backends[index].batchDue = due }
        template.append(to: &backends[index].batch, number: tally.published, device: device, due: due)
        backends[index].batched += 1
        if backends[index].batched == settings.batch { closeBatch(template, index) }
    }

    private mutating func closeBatch(_ template: BenchBatchTemplate, _ index: Int) {
        var entries: [UInt8] = []
        swap(&entries, &backends[index].batch)
        template.close(&entries, into: &backends[index].output)
        swap(&entries, &backends[index].batch)
        backends[index].open.append(backends[index].batchDue)
        backends[index].counts.append(backends[index].batched)
        backends[index].batched = 0
    }

    private mutating func send(_ index: Int) {
        if let batchTemplate, backends[index].batched > 0 { closeBatch(batchTemplate, index) }
        flush(index)
    }

    private mutating func freeBackend() -> Int? {
        for _ in backends.indices {
            let isFull = backends[nextBackend].inFlight >= settings.pipeline
            if !isFull && !backends[nextBackend].isGone { return nextBackend }
            nextBackend = (nextBackend + 1) % backends.count
        }
        return nil
    }

    mutating func anyDevice() -> Int {
        draw ^= draw << 13
        draw ^= draw >> 7
        draw ^= draw << 17
        return crowd.upperBound + Int(truncatingIfNeeded: draw % UInt64(devices.count - crowd.upperBound))
    }

    /// Every device once before any has its second; not neighbours one after the other.
    private func inTurn(_ number: UInt64) -> Int {
        let count = UInt64(crowd.isEmpty ? devices.count : crowd.count)
        // A prime steps through all, unless it divides the count.
        let stride: UInt64 = count % 7_919 == 0 ? 7_907 : 7_919
        return Int((number % count) * stride % count)
    }

    mutating func flush(_ index: Int) {
        while backends[index].sent < backends[index].output.count {
            let sent = backends[index].sent
            let descriptor = backends[index].descriptor
            let transfer = backends[index].output.withUnsafeBytes {
                Socket.send(descriptor, UnsafeRawBufferPointer(rebasing: $0[sent...]))
            }
            switch transfer {
            case .moved(let count): backends[index].sent += count
            case .wouldBlock:
                watch(index, writing: true)
                return
            case .ended: return
            case .failed(let code):
                // While the connection is under way there is no peer yet (ENOTCONN).
                if code == 107 { watch(index, writing: true) } else { loseBackend(index, SystemError("push", code)) }
                return
            }
        }
        backends[index].output.removeAll(keepingCapacity: true)
        backends[index].sent = 0
        watch(index, writing: false)
    }

    private mutating func watch(_ index: Int, writing: Bool) {
        guard backends[index].isWaitingToWrite != writing else { return }
        backends[index].isWaitingToWrite = writing
        try? poller.modify(
            backends[index].descriptor, writing ? [.readable, .writable] : .readable,
            token: Self.backendBit | UInt64(index))
    }

    mutating func backendEvent(_ index: Int, writable: Bool) throws(BenchFailure) {
        guard !backends[index].isGone else { return }
        if writable && backends[index].isWaitingToWrite { flush(index) }
        switch Socket.receive(backends[index].descriptor, into: readBuffer) {
        case .moved(let count):
            let bytes = UnsafeRawBufferPointer(rebasing: readBuffer[..<count])
            if backends[index].input.isEmpty {
                let used = readAnswers(index, bytes)
                if used < count { backends[index].input = Array(bytes[used...]) }
            } else {
                var input = backends[index].input
                backends[index].input = []
                input.append(contentsOf: bytes)
                let used = input.withUnsafeBytes { readAnswers(index, $0) }
                input.removeFirst(used)
                backends[index].input = input
            }
        case .wouldBlock: break
        case .ended: loseBackend(index, nil)
        case .failed(let code): loseBackend(index, SystemError("push", code))
        }
        if backends.allSatisfy(\.isGone) {
            throw BenchFailure(sentence: "the gateway has closed every backend's connection" + problems.sentence)
        }
    }

    private mutating func loseBackend(_ index: Int, _ error: SystemError?) {
        problems.note(error?.description ?? "the gateway closed a backend's connection")
        backends[index].isGone = true
        tally.refused += UInt64(batchTemplate == nil ? backends[index].inFlight : backends[index].counts.reduce(0, +))
        backends[index].counts = []
        backends[index].open = []
        backends[index].openHead = 0
        Socket.close(backends[index].descriptor)
    }

    /// Takes whole answers off the front and says how many bytes they had.
    private mutating func readAnswers(_ index: Int, _ bytes: UnsafeRawBufferPointer) -> Int {
        if linkTemplate != nil { return readLinkAnswers(index, bytes) }
        let received = BenchClock.nanoseconds
        var offset = 0
        while let answer = BenchAnswer.read(UnsafeRawBufferPointer(rebasing: bytes[offset...])) {
            offset += answer.size
            guard let due = backends[index].answered() else {
                problems.note("an answer without a question")
                continue
            }
            let count = UInt64(batchTemplate == nil ? 1 : backends[index].counts.removeFirst())
            if answer.status == 200 {
                tally.accepted += count
                answers.record(received > due ? received - due : 0)
            } else {
                tally.refused += count
                let body = bytes[(offset - answer.bodySize)..<offset]
                problems.note("HTTP \(answer.status): \(String(decoding: body.prefix(160), as: UTF8.self))")
            }
        }
        return offset
    }
}

/// The frame of an HTTP answer with a `Content-Length`.
struct BenchAnswer {
    let status: Int
    let size: Int
    let bodySize: Int

    /// nil while the answer is not whole.
    static func read(_ bytes: UnsafeRawBufferPointer) -> BenchAnswer? {
        guard bytes.count >= 16 else { return nil }
        var status = 0
        for digit in bytes[9..<12] { status = status * 10 + Int(digit &- 48) }
        var lineStart = 0
        var length = 0
        var index = 0
        while index + 1 < bytes.count {
            guard bytes[index] == 13, bytes[index + 1] == 10 else {
                index += 1
                continue
            }
            if index == lineStart {
                let size = index + 2 + length
                return bytes.count >= size ? BenchAnswer(status: status, size: size, bodySize: length) : nil
            }
            length = contentLength(UnsafeRawBufferPointer(rebasing: bytes[lineStart..<index])) ?? length
            index += 2
            lineStart = index
        }
        return nil
    }

    private static func contentLength(_ line: UnsafeRawBufferPointer) -> Int? {
        let name: StaticString = "content-length:"
        guard line.count > name.utf8CodeUnitCount else { return nil }
        for position in 0..<name.utf8CodeUnitCount where line[position] | 0x20 != name.utf8Start[position] | 0x20 {
            return nil
        }
        var value = 0
        for digit in line[name.utf8CodeUnitCount...] where digit >= 48 && digit <= 57 {
            value = min(1 << 30, value * 10 + Int(digit - 48))
        }
        return value
    }
}
