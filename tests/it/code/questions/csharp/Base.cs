using Acme.Store;

namespace Acme.App;

public abstract class Base
{
    protected Cache Kept { get; } = null;

    protected Base(string name) { }

    //? Base.cs:Base.Show
    protected string Named() { Show(); return ""; }

    public virtual void Show() { }

    //? Store/Disk.cs:Disk.Open
    protected Disk Disks() => Disk.Open();
}
