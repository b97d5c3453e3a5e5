using System.Threading.Tasks;

namespace Acme.Store;

public class Disk : IKeeper
{
    //? Store/Disk.cs:Disk
    public static Disk Open() => new Disk();

    //? Store/Disk.cs:Disk.Entry
    public Entry Get(string key) { return new Entry(key); }

    public void Close() { }

    //? Store/Disk.cs:Disk.Get
    public async Task<Entry> LoadAsync() { await Task.Yield(); return Get("a"); }

    //? Store/Disk.cs:Disk.Get
    void IKeeper.Keep(string key) { Get(key); }

    public record Entry(string Key)
    {
        public byte[] Read() { return null; }
    }
}
