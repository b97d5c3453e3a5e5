package shop.util;

public class Text {
    public static final Text DEFAULT = new Text();

    public static String trimmed(String text) { return text.trim(); }

    //? shop/util/Text.java:Text.trimmed
    public static String upper(String text) { return trimmed(text).toUpperCase(); }

    String padded() { return ""; }
}
