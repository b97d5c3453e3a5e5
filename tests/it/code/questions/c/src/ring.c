#include "shop/ring_a.h"

//? include/shop/ring_a.h:ring_a include/shop/ring_b.h:ring_b src/ring.c:ring_b
int ring_a(int depth)
{
    return depth ? ring_b(depth - 1) : 0;
}

//? include/shop/ring_b.h:ring_b include/shop/ring_a.h:ring_a src/ring.c:ring_a
int ring_b(int depth)
{
    return depth ? ring_a(depth - 1) : 0;
}
