typedef struct json_value {
    int kind;
} json_value;

json_value *json_parse(const char *text);
