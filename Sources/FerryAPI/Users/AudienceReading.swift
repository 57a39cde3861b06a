internal import FerryAudience

extension AudienceExpression {
    /// Reads conditions as GeTui's calls write them: `[{"key": …, "values": […], "opt_type": …}]`, at `name` of `fields`.
    init(_ fields: FieldReader, _ name: StaticString, _ limits: UserLimits) throws(APIError) {
        guard let list = try fields.value(name) else { throw .null(fields.path(name)) }
        guard let elements = list.elements else { throw .type(fields.path(name), mustBe: "an array of objects") }
        var conditions: [Condition] = []
        for element in elements {
            guard conditions.count < UserLimits.conditions else {
                throw .overLimit(fields.path(name), "at most \(UserLimits.conditions) conditions")
            }
            do throws(APIError) {
                guard element.kind == .object else { throw .type(fields.path(name), mustBe: "an array of objects") }
                conditions.append(try Self.condition(FieldReader(element), limits))
            } catch {
                throw error.inEntry("\(fields.path(name))[\(conditions.count)]")
            }
        }
        guard !conditions.isEmpty else { throw .empty(fields.path(name)) }
        self.init(conditions)
    }

    private static func condition(_ fields: FieldReader, _ limits: UserLimits) throws(APIError) -> Condition {
        guard let key = try fields.nonEmptyString("key") else { throw .empty("key") }
        guard let field = Field(name: key) else {
            throw .invalid("key", "\(Excerpt.quoted(key)), must be phone_type, region or custom_tag")
        }
        guard let values = try fields.strings("values") else { throw .null("values") }
        guard !values.isEmpty else { throw .empty("values") }
        guard values.count <= UserLimits.values else { throw .overLimit("values", "at most \(UserLimits.values)") }
        var distinct: [String] = []
        var seen: Set<[UInt8]> = []
        for value in values {
            switch field {
            case .phoneType:
                guard let type = PhoneType(name: value) else {
                    throw .invalid("values", "\(Excerpt.quoted(value)), must be android or ios")
                }
                if seen.insert(Array(type.name.utf8)).inserted { distinct.append(type.name) }
                continue
            case .region:
                guard (1...UserLimits.textBytes).contains(value.utf8.count) else {
                    throw .invalid("values", "a region has 1 to \(UserLimits.textBytes) bytes")
                }
            case .customTag: _ = try UserReading.checked(tag: value, "values", limits)
            }
            // What is said twice would be looked at twice for each device.
            if seen.insert(Array(value.utf8)).inserted { distinct.append(value) }
        }
        // One value means the same whichever way values go together, but for `not`.
        let text = try fields.nonEmptyString("opt_type") ?? "or"
        guard let operation = Operation(name: text) else {
            throw .invalid("opt_type", "\(Excerpt.quoted(text)), must be or, and or not")
        }
        return Condition(field, operation, distinct)
    }
}
