package shop;

class Helper {
    //? shop/Helper.java:Helper.times
    void help() { times(1); times("a"); }

    static void times(int n) { }

    //? shop/Helper.java:Helper.Deep.Deeper
    static Deep.Deeper times(String text) { return new Deep.Deeper(); }

    static class Deep {
        static class Deeper {
            //? shop/Helper.java:Helper.times
            void up() { times(2); }
        }
    }
}
