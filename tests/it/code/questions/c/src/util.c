#include "util.h"
#include <stdlib.h>

//? src/util.h:util_new
void *util_new(size_t bytes)
{
    return calloc(1, bytes);
}

//? src/util.h:util_free
void util_free(void *it)
{
    free(it);
}

//?
static int count(const char *name)
{
    return name[0];
}

//? src/util.h:util_check src/util.c:count
int util_check(const char *name)
{
#if defined(CHECK_ALL) && \
    CHECK_ALL > 1
    if (!name) {
#else
    if (name == NULL) {
#endif
        return 0;
    }
    return count(name) > 0;
}
