package shop.util;

public interface Numbers {
    static int twice(int n) { return 2 * n; }
}
