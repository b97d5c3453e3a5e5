#pragma once
#include <stddef.h>

void *util_new(size_t bytes);
void util_free(void *it);
int util_check(const char *name);

//? src/util.h:util_new src/util.c:util_new
#define UTIL_NEW(type) ((type *)util_new(sizeof(type)))
