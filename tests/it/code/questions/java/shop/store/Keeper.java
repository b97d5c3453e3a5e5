package shop.store;

public interface Keeper {
    void keep(String key);

    //? shop/store/Keeper.java:Keeper.keep
    default void twice() {
        keep("a");
        keep("a");
    }
}
