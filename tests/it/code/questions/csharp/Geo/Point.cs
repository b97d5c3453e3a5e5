namespace Acme.Geo
{
    public readonly struct Point
    {
        public Point(int x, int y) { }

        //? Geo/Point.cs:Point
        public static Point Make() => new Point(1, 2);

        public int Length() => 1;

        public static Point operator +(Point a, Point b) => a;
    }
}
