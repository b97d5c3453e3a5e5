using System.Collections.Generic;

namespace Acme.Store
{
    public class Cache
    {
        private readonly List<string> all = new();

        public Cache(string name) { }

        public void Put(string key) { all.Add(key); }

        public int Size() => all.Count;
    }
}
