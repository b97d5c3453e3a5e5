namespace Acme
{
    namespace Geo
    {
        public class Shape
        {
            //? Geo/Point.cs:Point.Make
            public int Area() { Point.Make(); return 1; }
        }
    }
}
