namespace Acme.Text;

public static class Numbers
{
    public static int Twice(int n) => 2 * n;
}
