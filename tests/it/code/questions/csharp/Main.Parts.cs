using Acme.Store;

namespace Acme.App;

public partial class Main
{
    private Cache other;

    //? Store/Cache.cs:Cache.Size Main.cs:Main.Bare Store/Cache.cs:Cache.Put
    void InOtherFile()
    {
        other.Size();
        Bare();
        cache.Put("a");
    }
}
