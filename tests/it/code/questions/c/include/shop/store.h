#ifndef SHOP_STORE_H
#define SHOP_STORE_H

#include <stddef.h>
#include "ring_a.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHOP_API __attribute__((visibility("default")))

typedef struct shop_store shop_store;

/** How a store keeps what it is given. */
struct shop_ops {
    int (*open)(shop_store *store);
    void (*close)(shop_store *store);
};

struct shop_store {
    const struct shop_ops *ops;
    size_t size;
    struct shop_store *next;
};

/** Opens one. */
SHOP_API shop_store *store_open(const char *name);
SHOP_API void store_close(shop_store *store);
int store_size(const shop_store *store);

#define STORE_EACH(store, it) for (shop_store *it = first_of(store); it; it = it->next)

//?
static inline shop_store *first_of(shop_store *store)
{
    return store->next;
}

#ifdef __cplusplus
}
#endif

#endif
