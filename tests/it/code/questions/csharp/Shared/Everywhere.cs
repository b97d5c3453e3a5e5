global using Acme.Shared;

namespace Acme.Shared
{
    public static class Everywhere
    {
        public static void Known() { }
    }
}
