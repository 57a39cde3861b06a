internal import FerryCore

/// Which devices of an app a call is for: those that meet all conditions. Without conditions, all. Values are compared byte for
/// byte.
package struct AudienceExpression: Hashable, Sendable {
    /// What a condition looks at.
    package enum Field: UInt8, Hashable, Sendable, CaseIterable {
        case phoneType = 1
        case region = 2
        case customTag = 3

        /// As calls spell it.
        package var name: String {
            switch self {
            case .phoneType: "phone_type"
            case .region: "region"
            case .customTag: "custom_tag"
            }
        }

        package init?(name: String) {
            guard let field = Self.allCases.first(where: { $0.name == name }) else { return nil }
            self = field
        }
    }

    /// How the values of one condition go together.
    package enum Operation: UInt8, Hashable, Sendable, CaseIterable {
        /// The device has one of them.
        case or = 1
        /// It has all of them.
        case and = 2
        /// It has none of them.
        case not = 3

        package var name: String {
            switch self {
            case .or: "or"
            case .and: "and"
            case .not: "not"
            }
        }

        package init?(name: String) {
            guard let operation = Self.allCases.first(where: { $0.name == name }) else { return nil }
            self = operation
        }
    }

    package struct Condition: Hashable, Sendable {
        package let field: Field
        /// Not empty.
        package let values: [String]
        package let operation: Operation

        package init(_ field: Field, _ operation: Operation, _ values: [String]) {
            self.field = field
            self.values = values
            self.operation = operation
        }
    }

    package var conditions: [Condition]

    package init(_ conditions: [Condition] = []) { self.conditions = conditions }

    /// All devices that have this tag.
    package init(tag: String) { conditions = [Condition(.customTag, .or, [tag])] }

    /// `phoneType` is what holds, whoever said it.
    package func matches(_ profile: DeviceProfile, phoneType: PhoneType?) -> Bool {
        AudienceFilter(self).matches(profile, phoneType)
    }
}

/// An expression, ready to be asked of many devices: what it costs to ask grows with the tags of a device, not with the values.
struct AudienceFilter: Sendable {
    private struct Condition: Sendable {
        let field: AudienceExpression.Field
        let operation: AudienceExpression.Operation
        let values: Set<ExactText>
    }

    private let conditions: [Condition]

    init(_ expression: AudienceExpression) {
        conditions = expression.conditions.map {
            Condition(field: $0.field, operation: $0.operation, values: Set($0.values.map { ExactText($0) }))
        }
    }

    func matches(_ profile: DeviceProfile, _ phoneType: PhoneType?) -> Bool {
        conditions.allSatisfy { condition in
            // A device has no tag twice.
            let count =
                switch condition.field {
                case .phoneType: Self.count(phoneType?.name, condition.values)
                case .region: Self.count(profile.region.isEmpty ? nil : profile.region, condition.values)
                case .customTag: profile.tags.count { condition.values.contains(ExactText($0)) }
                }
            return switch condition.operation {
            case .or: count > 0
            case .and: count == condition.values.count
            case .not: count == 0
            }
        }
    }

    private static func count(_ text: String?, _ values: Set<ExactText>) -> Int {
        text.map { values.contains(ExactText($0)) } == true ? 1 : 0
    }
}
