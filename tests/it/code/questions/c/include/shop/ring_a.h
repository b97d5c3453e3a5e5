#ifndef RING_A_H
#define RING_A_H
#include "ring_b.h"
#include "ring_a.h"
int ring_a(int depth);
#endif
