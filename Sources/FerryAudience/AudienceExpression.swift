/// Which devices of an app a call is for: those that meet all conditions. Without conditions, all.
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
        conditions.allSatisfy { $0.isMet(by: profile, phoneType) }
    }
}

extension AudienceExpression.Condition {
    fileprivate func isMet(by profile: DeviceProfile, _ phoneType: PhoneType?) -> Bool {
        func has(_ value: String) -> Bool {
            switch field {
            case .phoneType: phoneType?.name == value
            case .region: !profile.region.isEmpty && profile.region == value
            case .customTag: profile.tags.contains(value)
            }
        }
        return switch operation {
        case .or: values.contains(where: has)
        case .and: values.allSatisfy(has)
        case .not: !values.contains(where: has)
        }
    }
}
