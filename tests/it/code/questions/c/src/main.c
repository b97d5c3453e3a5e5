#include <stdio.h>
#include <json.h>
#include "shop/store.h"
#include "clock_posix.h"

typedef int (*callback)(int value);

//? src/main.c:twice
static int apply(callback each, int value)
{
    return each(value) + twice(value);
}

//?
static int twice(int value)
{
    return value * 2;
}

#ifdef WITH_LOG
//?
static void report(const char *text)
{
    puts(text);
}
#else
static void report(const char *text)
{
    (void)text;
}
#endif

//? src/main.c:report src/main.c:apply include/shop/store.h:store_open src/store.c:store_open include/shop/store.h:store_size src/store.c:store_size include/shop/store.h:store_close src/store.c:store_close
static int sell(int argc, char **argv)
{
    shop_store *store = store_open(argv[0]);
    report("open");
    int size = store_size(store);
    store_close(store);
    return apply(twice, size + argc);
}

//? vendor/json/json.h:json_parse vendor/json/json.c:json_parse src/clock_posix.h:now src/main.c:sell include/shop/store.h:shop_ops.close
int main(int argc, char **argv)
{
    json_value *value = json_parse("{}");
    struct shop_store *all[2] = { 0 };
    if (now() > value->kind)
        all[1]->ops->close(all[1]);
    return sell(argc, argv);
}
