#include "json.h"

//? vendor/json/json.h:json_parse
json_value *json_parse(const char *text)
{
    static json_value one;
    (void)text;
    return &one;
}
