// swift-tools-version: 6.2
import PackageDescription

// Targets stand in the order of their level: each depends only on what is above it here. The picture, with the reasons,
// is in docs/ARCHITECTURE.md; `.ci/checks/edges.py` holds the sources to exactly these edges.

let swiftSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]
let cSettings: [CSetting] = [.treatAllWarnings(as: .error), .enableWarning("all")]
let cxxSettings: [CXXSetting] = [.treatAllWarnings(as: .error), .enableWarning("all")]

let package = Package(
    name: "ferry",
    products: [
        .executable(name: "ferry", targets: ["ferry"]),
        .library(name: "FerryClient", targets: ["FerryClient"]),
    ],
    targets: [
        // Level 0: C shims, and the vocabulary that every module shares.
        .target(name: "CLinux", cSettings: cSettings),
        .target(name: "COpenSSL", cSettings: cSettings, linkerSettings: [.linkedLibrary("crypto")]),
        .target(name: "CSimdJSON", cxxSettings: cxxSettings, linkerSettings: [.linkedLibrary("simdjson")]),
        .target(name: "CCurl", cSettings: cSettings, linkerSettings: [.linkedLibrary("curl")]),
        .systemLibrary(name: "CRocksDB"),
        .systemLibrary(name: "CZlib"),
        .target(name: "FerryCore"),

        // Level 1: bytes and decisions (pure); the operating system (not).
        .target(name: "FerryWire", dependencies: ["FerryCore"]),
        .target(name: "FerryRouting", dependencies: ["FerryCore"]),
        .target(name: "FerryStats", dependencies: ["FerryCore"]),
        .target(name: "FerryAudience", dependencies: ["FerryCore"]),
        .target(name: "FerryIO", dependencies: ["FerryCore", "CLinux", "COpenSSL", "CZlib"]),

        // Level 2: one concern each; they never import each other.
        .target(name: "FerrySession", dependencies: ["FerryCore", "FerryWire"]),
        .target(name: "FerryAPI", dependencies: ["FerryCore", "FerryAudience", "CSimdJSON"]),
        .target(name: "FerryClientCore", dependencies: ["FerryCore", "FerryWire"]),
        .target(name: "FerryAPNS", dependencies: ["FerryCore", "FerryIO"]),
        .target(name: "FerryStore", dependencies: ["FerryCore", "FerryStats", "FerryIO", "CRocksDB", "CZlib"]),
        .target(name: "FerryReceipts", dependencies: ["FerryCore", "FerryStats", "FerryIO", "CCurl"]),

        // Level 3: where the concerns meet.
        .target(
            name: "FerryGateway",
            dependencies: [
                "FerryCore", "FerryWire", "FerryRouting", "FerryStats", "FerryAudience", "FerryIO", "FerrySession",
                "FerryAPI", "FerryAPNS", "FerryStore", "FerryReceipts",
            ]),
        // The one that may import a neighbour: it plays the whole gateway.
        .target(
            name: "FerrySimulation",
            dependencies: [
                "FerryCore", "FerryStats", "FerryWire", "FerryIO", "FerryRouting", "FerrySession", "FerryAPNS",
                "FerryStore", "FerryReceipts", "FerryClientCore", "FerryGateway",
            ]),
        .target(name: "FerryClient", dependencies: ["FerryCore", "FerryWire", "FerryClientCore", "FerryIO"]),

        // Level 4: the one executable.
        .executableTarget(
            name: "ferry",
            dependencies: [
                "FerryCore", "FerryStats", "FerryWire", "FerryIO", "FerryReceipts", "FerryGateway", "FerryClient",
                "FerrySimulation",
            ]),

        // Tests: what they share, one target a module, then the suites that cross modules.
        .target(name: "FerryTestSupport", path: "Tests/FerryTestSupport"),
        .testTarget(name: "FerryCoreTests", dependencies: ["FerryCore", "FerryTestSupport"]),
        .testTarget(name: "FerryWireTests", dependencies: ["FerryCore", "FerryWire"]),
        .testTarget(
            name: "FerryRoutingTests", dependencies: ["FerryCore", "FerryRouting", "FerryTestSupport"],
            exclude: ["Tables"]),
        .testTarget(name: "FerryStatsTests", dependencies: ["FerryCore", "FerryStats", "FerryTestSupport"]),
        .testTarget(
            name: "FerrySessionTests", dependencies: ["FerryCore", "FerryWire", "FerrySession", "FerryTestSupport"],
            exclude: ["Tables"]),
        .testTarget(name: "FerryAudienceTests", dependencies: ["FerryCore", "FerryAudience", "FerryTestSupport"]),
        .testTarget(name: "FerryIOTests", dependencies: ["FerryCore", "FerryWire", "FerryIO", "FerryTestSupport"]),
        .testTarget(name: "FerryAPITests", dependencies: ["FerryCore", "FerryAudience", "FerryAPI"]),
        .testTarget(name: "FerryAPNSTests", dependencies: ["FerryCore", "FerryAPNS"]),
        .testTarget(
            name: "FerryReceiptsTests",
            dependencies: ["FerryCore", "FerryIO", "FerryReceipts", "FerryTestSupport"]),
        .testTarget(
            name: "FerryClientCoreTests",
            dependencies: ["FerryCore", "FerryWire", "FerryIO", "FerryClientCore", "FerryTestSupport"],
            exclude: ["ClientStateMachine.matrix.txt"]),
        .testTarget(
            name: "FerryStoreTests",
            dependencies: ["FerryCore", "FerryIO", "FerryStats", "FerryStore", "FerryTestSupport", "CRocksDB"]),
        .testTarget(
            name: "FerryGatewayTests",
            dependencies: [
                "FerryCore", "FerryAudience", "FerryWire", "FerryRouting", "FerryIO", "FerrySession", "FerryAPI",
                "FerryStore", "FerryReceipts",
                "FerryGateway",
            ]),
        .testTarget(
            name: "FerrySimulationTests",
            dependencies: ["ferry", "FerryCore", "FerryIO", "FerryWire", "FerrySimulation"]),
        .testTarget(
            name: "FerryRaceTests",
            dependencies: [
                "FerryCore", "FerryWire", "FerryRouting", "FerryIO", "FerrySession", "FerryAPI", "FerryAPNS",
                "FerryStore", "FerryStats",
                "FerryClientCore", "FerryReceipts", "FerryGateway",
            ]),
        .testTarget(name: "EndToEndTests", dependencies: ["ferry", "FerryCore", "FerryWire", "FerryIO"]),
    ],
    cxxLanguageStandard: .cxx20
)

for target in package.targets {
    switch target.type {
    case .regular, .executable, .test:
        if !target.name.hasPrefix("C") { target.swiftSettings = swiftSettings }
    default: break
    }
}
