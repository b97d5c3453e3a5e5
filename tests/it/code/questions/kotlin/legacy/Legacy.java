package legacy;

import store.Disk;

public class Legacy {
    //? store/Disk.kt:Disk store/Disk.kt:Disk.close
    public void run() {
        new Disk().close();
    }
}
