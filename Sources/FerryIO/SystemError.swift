internal import CLinux

/// Something outside the process refused: which operation, on what, and the kernel's reason.
package struct SystemError: Error, Sendable, CustomStringConvertible {
    package let operation: String
    /// The kernel's error number, positive.
    package let code: Int32

    package init(_ operation: String, _ code: Int32) {
        self.operation = operation
        self.code = abs(code)
    }

    /// Such as "listen on 127.0.0.1:7700: Address already in use".
    package var description: String {
        guard let text = clinux_error_text(code) else { return "\(operation): error \(code)" }
        return "\(operation): \(String(cString: text))"
    }

    /// Passes a result >= 0 through and throws what the shim answered below that.
    package static func check<Result: SignedInteger>(
        _ operation: @autoclosure () -> String, _ result: Result
    ) throws(SystemError) -> Result {
        guard result >= 0 else { throw SystemError(operation(), Int32(truncatingIfNeeded: -result)) }
        return result
    }
}

/// Kernel error numbers that decide something.
package enum ErrorNumber {
    package static let again: Int32 = 11
    package static let tooManyFiles: Int32 = 24
    package static let tooManyFilesInSystem: Int32 = 23
    package static let noSuchFile: Int32 = 2
    package static let addressInUse: Int32 = 98
    package static let noSpace: Int32 = 28
    package static let quotaExceeded: Int32 = 122
    package static let inputOutput: Int32 = 5
    package static let accessDenied: Int32 = 13
    package static let notPermitted: Int32 = 1
    package static let readOnlyFileSystem: Int32 = 30
    package static let exists: Int32 = 17
    package static let notSupported: Int32 = 95
}
