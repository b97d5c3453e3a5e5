/* A worker for the tests: says what it was given, starts others, and tries what it should not have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

/* Starts this program again, with these arguments and our handles. */
static int start(const char *arguments)
{
    char self[MAX_PATH], line[2 * MAX_PATH];
    STARTUPINFOA startup = {.cb = sizeof startup};
    PROCESS_INFORMATION made;
    GetModuleFileNameA(NULL, self, sizeof self);
    snprintf(line, sizeof line, "\"%s\" %s", self, arguments);
    return CreateProcessA(self, line, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &made);
}

/* Holds a file open, so that nobody can remove it, for as long as this process lives. */
static int hold(const char *path)
{
    HANDLE held = CreateFileA(path, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0, NULL);
    if (held == INVALID_HANDLE_VALUE)
        return 3;
    Sleep(INFINITE);
    return 0;
}

static void say(const char *text)
{
    printf("%s\n", text);
    fflush(stdout);
}

int main(int argc, char **argv, char **environment)
{
    const char *verb = argc > 1 ? argv[1] : "";
    char line[2 * MAX_PATH];
    if (!strcmp(verb, "tell")) {
        for (int i = 2; i < argc; i++)
            printf("argument %s\n", argv[i]);
        for (; *environment; environment++)
            printf("variable %s\n", *environment);
        for (int c; (c = getchar()) != EOF;)
            putchar(c);
        fprintf(stderr, "an error\n");
        return 7;
    }
    if (!strcmp(verb, "hold"))
        return hold(argv[2]);
    if (!strcmp(verb, "tree") || !strcmp(verb, "orphan")) {
        /* A child, and a child of a child, each of which holds a file. */
        snprintf(line, sizeof line, "hold \"%s.1\"", argv[2]);
        int made = start(line);
        snprintf(line, sizeof line, "middle \"%s.2\"", argv[2]);
        made += start(line);
        say(made == 2 ? "two" : "fewer");
        if (!strcmp(verb, "orphan")) {
            /* Only when both are there. */
            for (int number = 1; number <= 2; number++) {
                snprintf(line, sizeof line, "%s.%d", argv[2], number);
                while (GetFileAttributesA(line) == INVALID_FILE_ATTRIBUTES)
                    Sleep(5);
            }
            return 0;
        }
        Sleep(INFINITE);
    }
    if (!strcmp(verb, "middle")) {
        snprintf(line, sizeof line, "hold \"%s\"", argv[2]);
        return !start(line);
    }
    if (!strcmp(verb, "handle")) {
        /* The number of a handle that the one who started us can be inherited from. */
        DWORD written = 0;
        HANDLE handle = (HANDLE)(ULONG_PTR)strtoull(argv[2], NULL, 10);
        say(WriteFile(handle, "x", 1, &written, NULL) ? "has it" : "has it not");
        return 0;
    }
    if (!strcmp(verb, "break")) {
        STARTUPINFOA startup = {.cb = sizeof startup};
        PROCESS_INFORMATION made;
        GetModuleFileNameA(NULL, line, sizeof line);
        BOOL done = CreateProcessA(line, NULL, NULL, NULL, FALSE, CREATE_BREAKAWAY_FROM_JOB, NULL, NULL, &startup, &made);
        say(done ? "broke away" : "held");
        return 0;
    }
    if (!strcmp(verb, "many")) {
        for (int left = atoi(argv[2]); left > 0; left--)
            start("sleep");
        say("many");
        Sleep(INFINITE);
    }
    if (!strcmp(verb, "sleep"))
        Sleep(INFINITE);
    if (!strcmp(verb, "grow")) {
        FILE *out = fopen(argv[2], "wb");
        static char block[1 << 16];
        for (int left = 64; out && left > 0; left--)
            fwrite(block, sizeof block, 1, out);
        if (out)
            fclose(out);
        say("grown");
        Sleep(INFINITE);
    }
    if (!strcmp(verb, "flood")) {
        static char block[1 << 16];
        memset(block, 'x', sizeof block);
        for (int left = 256; left > 0; left--)
            fwrite(block, sizeof block, 1, stdout);
        return 0;
    }
    return 2;
}
