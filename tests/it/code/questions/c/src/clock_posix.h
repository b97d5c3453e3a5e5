#pragma once

//?
static inline long now(void)
{
    return 0;
}
