namespace Acme.Store;

public interface IKeeper
{
    void Keep(string key);

    //? Store/IKeeper.cs:IKeeper.Keep
    void Twice() { Keep("a"); Keep("b"); }
}
