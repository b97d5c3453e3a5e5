#include <stdlib.h>
#include <shop/store.h>
#include "util.h"

static int count(const shop_store *store);

//?
static int open_it(shop_store *store)
{
    store->size = 1;
    return 0;
}

//? src/util.h:util_free src/util.c:util_free
static void close_it(shop_store *store)
{
    util_free(store);
}

static const struct shop_ops OPS = { open_it, close_it };

//? include/shop/store.h:store_open src/util.h:UTIL_NEW include/shop/store.h:shop_ops.open src/store.c:checked
SHOP_API shop_store *store_open(const char *name)
{
    shop_store *made = UTIL_NEW(shop_store);
    made->ops = &OPS;
    made->ops->open(made);
    return checked(made, name);
}

//? include/shop/store.h:store_close include/shop/store.h:shop_ops.close
void store_close(shop_store *store)
{
    if (store)
        store->ops->close(store);
}

//? include/shop/store.h:store_size src/store.c:count
int store_size(store)
    const shop_store *store;
{
    return count(store);
}

//? include/shop/store.h:STORE_EACH
static int count(const shop_store *store)
{
    int found = 0;
    STORE_EACH((shop_store *)store, it) {
        found++;
    }
    return found;
}

//? src/util.h:util_check src/util.c:util_check
static shop_store *checked(shop_store *store, const char *name)
{
    return util_check(name) ? store : NULL;
}
