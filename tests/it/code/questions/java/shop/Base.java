package shop;

import shop.store.Store;

abstract class Base {
    protected Store inherited;

    Base(String name) { }

    //? shop/Base.java:Base.show
    String named() { show(); return ""; }

    void show() { }

    //? shop/store/Store.java:Store.open
    Store store() { return Store.open(); }
}
