internal import Foundation
internal import Testing
