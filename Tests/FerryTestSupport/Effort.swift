private import Foundation

/// How much a search or a walk does: 1 in every run of the tests, more by `FERRY_TEST_EFFORT=<factor>`.
package enum Effort {
    package static let factor: Int = {
        let text = ProcessInfo.processInfo.environment["FERRY_TEST_EFFORT"] ?? ""
        return max(1, Int(text) ?? 1)
    }()

    /// `usual`, times the factor.
    package static func scaled(_ usual: Int) -> Int { usual * factor }

    /// As many seeds as `usual`, times the factor.
    package static func seeds(_ usual: Int) -> Range<UInt64> { 0..<UInt64(scaled(usual)) }
}
