package shop.store;

import java.util.HashMap;
import java.util.Map;

public class Cache {
    private final Map<String, String> all = new HashMap<>();

    public void put(String key) { all.put(key, key); }

    public int size() { return all.size(); }

    //? shop/store/Cache.java:Cache.size
    void clearAll() { if (size() > 0) { all.clear(); } }
}
