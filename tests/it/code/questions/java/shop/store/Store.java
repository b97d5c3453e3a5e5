package shop.store;

public class Store implements Keeper, AutoCloseable {
    public Cache kept;

    //? shop/store/Store.java:Store
    public static Store open() { return new Store(); }

    //? shop/store/Disk.java:Disk.find
    public Disk.Entry get(String key) { return Disk.find(key); }

    public Cache cache() { return kept; }

    //? shop/store/Cache.java:Cache.clearAll
    @Override
    public void close() { kept.clearAll(); }

    //? shop/store/Store.java:Store.get
    @Override
    public void keep(String key) { get(key); }
}
