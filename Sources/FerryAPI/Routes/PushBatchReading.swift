internal import FerryCore

extension PushBatch {
    /// Reads the body of a batch. What is wrong with one push refuses them all, and is said with its place in the list:
    /// nothing has been taken then.
    init(_ fields: FieldReader, limits: APILimits) throws(APIError) {
        let isAsync = try fields.truth("is_async") ?? false
        guard let list = try fields.value("msg_list") else { throw .null("msg_list") }
        guard let elements = list.elements else { throw .type("msg_list", mustBe: "an array of objects") }
        var pushes: [SinglePush] = []
        for element in elements {
            guard pushes.count < APILimits.pushesPerCall else {
                throw .overLimit("msg_list", "at most \(APILimits.pushesPerCall) in one call")
            }
            do throws(APIError) {
                guard element.kind == .object else { throw .type("msg_list", mustBe: "an array of objects") }
                pushes.append(try SinglePush(FieldReader(element), limits: limits))
            } catch {
                throw error.inEntry("msg_list[\(pushes.count)]")
            }
        }
        guard !pushes.isEmpty else { throw .empty("msg_list") }
        self.init(pushes: pushes, isAsync: isAsync)
    }
}
