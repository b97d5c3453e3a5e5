#pragma once
#include "ring_a.h"
int ring_b(int depth);
