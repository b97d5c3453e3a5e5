package shop;

import static java.lang.Math.sqrt;

record Point(int x, int y) {
    //? shop/Point.java:Point.check
    Point {
        check(x);
    }

    static void check(int x) { }

    //? shop/Point.java:Point.x
    int length() { return (int) sqrt(x()); }
}
