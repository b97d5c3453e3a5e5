/* Stands in for PowerShell, which Wine has not: writes what it was given to the file that its last argument names,
 * waits at the ACK pipe as a hook does, and writes what came. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

int main(int argc, char **argv, char **environment)
{
    FILE *out = fopen(argv[argc - 1], "w");
    if (!out)
        return 3;
    for (int i = 1; i < argc; i++)
        fprintf(out, "argument %s\n", argv[i]);
    for (; *environment; environment++)
        fprintf(out, "variable %s\n", *environment);
    const char *name = getenv("DEVIT_ACK_PIPE");
    HANDLE pipe = CreateFileA(name ? name : "", GENERIC_READ, 0, NULL, OPEN_EXISTING, 0, NULL);
    if (pipe == INVALID_HANDLE_VALUE)
        return 4;
    fprintf(out, "waiting\n");
    fflush(out);
    char byte;
    DWORD count = 0;
    while (ReadFile(pipe, &byte, 1, &count, NULL) && count == 1)
        fprintf(out, "byte %d\n", byte);
    fprintf(out, "over\n");
    fclose(out);
    return 0;
}
