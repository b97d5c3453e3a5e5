using System;
using System.Collections.Generic;
using Acme.Store;
using Acme.Text;
using static Acme.Text.Numbers;
using Point = Acme.Geo.Point;
using Shapes = Acme.Geo;

namespace Acme.App
{
    /// <summary>Begins everything.</summary>
    public partial class Main : Base
    {
        //? Store/Cache.cs:Cache
        private readonly Cache cache = new Cache("a");
        //? Store/Cache.cs:Cache
        private Cache quick = new("b");
        public Disk Disk { get; set; }

        public Main(int size) : base("main") { }

        //? Base.cs:Base.constructor Main.cs:Main.constructor
        public Main() : this(1) { }

        //? Store/Disk.cs:Disk Store/Disk.cs:Disk.Get
        void OfLocal()
        {
            Disk disk = new Disk();
            disk.Get("a");
        }

        //? Store/Disk.cs:Disk Store/Disk.cs:Disk.Get Store/Disk.cs:Disk.Entry.Read
        void OfVar()
        {
            var disk = new Disk();
            var entry = disk.Get("a");
            entry.Read();
        }

        //? Store/Cache.cs:Cache.Put Store/Cache.cs:Cache.Size Store/Disk.cs:Disk.Get
        void OfFields()
        {
            cache.Put("a");
            this.cache.Size();
            quick?.Put("b");
            Disk.Get("a");
        }

        //? Store/Disk.cs:Disk.Get Store/Disk.cs:Disk.Entry.Read
        void OfParameter(Disk disk) => disk.Get("a").Read();

        //? Main.cs:Main.OfFields Main.Parts.cs:Main.InOtherFile Base.cs:Base.Named
        void Bare()
        {
            OfFields();
            InOtherFile();
            Named();
        }

        //? Base.cs:Base.Show
        public override void Show() { base.Show(); }

        //? Text/Numbers.cs:Numbers.Twice
        int Static() => Twice(1);

        //? Text/Extensions.cs:Extensions.Padded Text/Extensions.cs:Extensions.Label Text/Extensions.cs:Extensions.Any
        void Extended(Disk disk, Cache other)
        {
            "a".Padded();
            disk.Label();
            other.Any();
        }

        //? Geo/Point.cs:Point Geo/Point.cs:Point.Length Geo/Point.cs:Point.Make Geo/Shape.cs:Shape Geo/Shape.cs:Shape.Area
        void Aliased()
        {
            new Point(1, 2).Length();
            Point.Make();
            var shape = new Shapes.Shape();
            shape.Area();
        }

        //? Geo/Point.cs:Point.Make
        void FullNames()
        {
            Acme.Geo.Point.Make();
            global::Acme.Geo.Point.Make();
            Geo.Point.Make();
        }

        //? Store/Disk.cs:Disk.Get Store/Cache.cs:Cache.Size Main.cs:Main.TryFind Store/Cache.cs:Cache.Put
        void OfPatterns(object it)
        {
            if (it is Disk disk) { disk.Get("a"); }
            switch (it)
            {
                case Cache kept when kept.Size() > 0:
                    break;
            }
            if (TryFind(out Cache found)) found.Put("a");
            (it as Cache).Put("b");
        }

        bool TryFind(out Cache found) { found = null; return false; }

        //? Store/Disk.cs:Disk.Get Store/Disk.cs:Disk.Open Store/Disk.cs:Disk.Close
        void OfLoops(List<Disk> all)
        {
            foreach (Disk one in all) one.Get("a");
            using var disk = Disk.Open();
            disk.Close();
        }

        //? Store/Disk.cs:Disk.LoadAsync Store/Disk.cs:Disk.Entry.Read
        async void Awaited(Disk disk)
        {
            var entry = await disk.LoadAsync();
            entry.Read();
        }

        //? Main.cs:Main.OfFields Main.cs:Main.Lambdas.Local Store/Cache.cs:Cache.Size
        void Lambdas(List<string> all)
        {
            int Local() { return cache.Size(); }
            all.ForEach(one => OfFields());
            all.Sort((a, b) => Local());
            Func<int> f = () => cache.Size();
        }

        //? Store/Cache.cs:Cache.Size
        int Count
        {
            get { return cache.Size(); }
        }

        //? Base.cs:Base.Disks Store/Disk.cs:Disk.Get Store/Cache.cs:Cache.Size
        void Inherited()
        {
            Disks().Get("a");
            Kept.Size();
        }

        //? Store/IKeeper.cs:IKeeper.Keep
        void OfInterface(IKeeper keeper) { keeper.Keep("a"); }

        //? Store/Disk.cs:Disk.Get
        void OfBound<T>(T any) where T : Disk { any.Get("a"); }

        //? Main.cs:Main.Builder Main.cs:Main.Builder.Size Main.cs:Main.Builder.Done
        void Chained() { new Builder().Size(1).Size(2).Done(); }

        class Builder
        {
            public Builder Size(int n) { return this; }

            //? Main.cs:Main Main.cs:Main.Helper
            public Main Done() { Helper(); return new Main(); }
        }

        static void Helper() { }

#if DEBUG
        void Log() { Helper(); }
#else
        //? Main.cs:Main.Helper Main.cs:Main.OfFields
        void Log() { OfFields(); }
#endif

        //? Shared/Everywhere.cs:Everywhere.Known
        void ForAll() { Everywhere.Known(); }

        //?
        void Unknown(object any, Dictionary<string, string> map)
        {
            any.ToString();
            map.Add("a", "b");
            Console.WriteLine(map.Count);
            string.Format("a").Trim();
        }
    }
}
