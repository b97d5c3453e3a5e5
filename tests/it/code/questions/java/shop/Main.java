package shop;

import shop.store.Cache;
import shop.store.Disk.Entry;
import shop.store.Store;
import shop.util.*;
import static shop.util.Text.trimmed;
import static shop.util.Numbers.*;

/** Begins everything. */
public class Main extends Base {
    //? shop/store/Cache.java:Cache
    private final Cache cache = new Cache();
    private static Store shared;

    Main() { super("main"); }

    //? shop/Base.java:Base.constructor shop/Main.java:Main.constructor
    Main(int size) { this(); }

    //? shop/store/Store.java:Store shop/store/Store.java:Store.get
    static void ofLocal() {
        Store store = new Store();
        store.get("a");
    }

    //? shop/store/Store.java:Store shop/store/Store.java:Store.get shop/store/Disk.java:Disk.Entry.read
    void ofVar() {
        var store = new Store();
        var entry = store.get("a");
        entry.read();
    }

    //? shop/store/Cache.java:Cache.put shop/store/Cache.java:Cache.size
    void ofField() {
        cache.put("a");
        this.cache.size();
    }

    //? shop/store/Store.java:Store.get shop/store/Disk.java:Disk.Entry.read
    void ofParameter(Store store) { store.get("a").read(); }

    //? shop/Main.java:Main.ofField shop/Main.java:Main.ofLocal shop/Base.java:Base.named
    void bare() {
        ofField();
        ofLocal();
        named();
    }

    //? shop/Base.java:Base.show
    @Override
    void show() { super.show(); }

    //? shop/util/Text.java:Text.trimmed shop/util/Numbers.java:Numbers.twice
    void imported() {
        trimmed("a");
        twice(1);
    }

    //? shop/util/Text.java:Text.upper shop/util/Text.java:Text.padded
    void ofStatic() {
        Text.upper("a");
        Text.DEFAULT.padded();
    }

    //? shop/Helper.java:Helper shop/Helper.java:Helper.help
    void samePackage() { new Helper().help(); }

    //? shop/store/Disk.java:Disk.Entry shop/store/Disk.java:Disk.Entry.read
    void nested() { new Entry().read(); }

    //? shop/store/Store.java:Store.open shop/store/Store.java:Store.get
    void fullName() {
        shop.store.Store.open().get("a");
        shop.store.Store s = null;
    }

    //? shop/store/Store.java:Store.get
    void ofLoop(java.util.List<Store> all) {
        for (Store one : all) {
            one.get("a");
        }
    }

    //? shop/store/Store.java:Store.get shop/store/Cache.java:Cache.size
    void ofPattern(Object it) {
        if (it instanceof Store store) {
            store.get("a");
        } else if (it instanceof Cache && ((Cache) it).size() > 0) {
            return;
        }
    }

    //? shop/store/Store.java:Store.get shop/store/Cache.java:Cache.put
    void ofSwitch(Object it) {
        switch (it) {
            case Store store -> store.get("a");
            case Cache kept -> kept.put("a");
            default -> { }
        }
    }

    //? shop/store/Store.java:Store.open shop/store/Store.java:Store.close
    void ofResource() throws Exception {
        try (Store store = Store.open()) {
            store.close();
        }
    }

    //? shop/Main.java:Main.ofField shop/store/Cache.java:Cache.size
    void ofLambda(java.util.List<String> all) {
        all.forEach(one -> ofField());
        all.sort((a, b) -> cache.size());
    }

    //? shop/Main.java:Main.accepts shop/store/Store.java:Store.open shop/store/Store.java:Store
    void ofReference() {
        accepts(Store::open);
        accepts(Store::new);
    }

    //? shop/store/Cache.java:Cache.size
    void accepts(Object any) { cache.size(); }

    //? shop/Main.java:Main.ofField shop/Base.java:Base.named
    Runnable nameless() {
        return new Runnable() {
            private int count;

            @Override
            public void run() {
                ofField();
                named();
                helper();
            }

            void helper() { count++; }
        };
    }

    //? shop/Main.java:Main.Inner shop/Main.java:Main.Inner.go
    void inner() { new Inner().go(); }

    class Inner {
        //? shop/Main.java:Main.ofField shop/Main.java:Main.Inner.go shop/store/Cache.java:Cache.put
        void go() {
            ofField();
            Main.this.cache.put("b");
            go();
        }
    }

    //? shop/Kind.java:Kind.label
    void ofEnum(Kind kind) {
        kind.label();
    }

    //? shop/store/Keeper.java:Keeper.keep
    void ofInterface(shop.store.Keeper keeper) { keeper.keep("a"); }

    //? shop/store/Keeper.java:Keeper.twice
    void ofDefault(shop.store.Keeper keeper) { keeper.twice(); }

    //? shop/Point.java:Point shop/Point.java:Point.x shop/Point.java:Point.length
    int ofRecord() {
        Point point = new Point(1, 2);
        return point.x() + point.length();
    }

    //? shop/store/Store.java:Store.cache shop/store/Cache.java:Cache.size
    void ofGetter(Store store) { store.cache().size(); }

    //? shop/store/Cache.java:Cache.size
    void ofForeignField(Store store) { store.kept.size(); }

    //? shop/Base.java:Base.store shop/store/Store.java:Store.get
    void ofInheritedGetter() { store().get("a"); }

    //? shop/store/Store.java:Store.get
    void ofInheritedField() { inherited.get("a"); }

    //? shop/store/Store.java:Store.get
    <T extends Store> void ofBound(T any) { any.get("a"); }

    //? shop/Main.java:Main.Builder shop/Main.java:Main.Builder.size shop/Main.java:Main.Builder.done
    void chained() { new Builder().size(1).size(2).done(); }

    static class Builder {
        Builder size(int size) { return this; }
        //? shop/Main.java:Main
        Main done() { return new Main(); }
    }

    //?
    void unknown(Object any, java.util.Map<String, String> map) {
        any.toString();
        map.get("a");
        System.out.println(map.size());
        String.valueOf(any).trim();
        java.util.List.of();
    }
}
