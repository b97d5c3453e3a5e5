// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "Shop",
    targets: [
        .target(name: "Store"),
        .target(name: "Words", path: "Sources/Text"),
        .executableTarget(name: "App", dependencies: ["Store", "Words"]),
        .testTarget(name: "AppTests", dependencies: ["App"]),
    ]
)
