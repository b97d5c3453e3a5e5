import XCTest
@testable import App
import Store

final class MainTests: XCTestCase {
    //? Sources/App/Main.swift:Main Sources/App/Main.swift:Main.bare Sources/App/Base.swift:topLevel
    func testBare() {
        let main = Main()
        main.bare()
        topLevel()
    }

    //?
    func testNotImported() {
        Words.upper("a")
        trimmed("a")
    }
}
