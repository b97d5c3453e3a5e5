package shop;

enum Kind {
    OPEN {
        //? shop/Kind.java:Kind.other
        @Override
        String label() { return other(); }
    },
    CLOSED;

    //? shop/Kind.java:Kind.other
    String label() { return this.other(); }

    static String other() { return ""; }
}
