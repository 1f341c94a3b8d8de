/* SPDX-License-Identifier: MIT
 * Calls a fuzz target for each file of its corpus, without a fuzzer: one case per file, in TAP.
 *
 *     replay-TARGET FILE-OR-FOLDER...
 *
 * A case fails if the process dies, or if the second of two runs leaks a block. */
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc_fail.h"

#define FILE_MAX ((size_t)1 << 20)

static int results; /* where the results go; the target may print to stdout, or close it */
static unsigned cases, failures;

/* Reads a file into a block of exactly its size, which the caller frees. */
static uint8_t *read_file(const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(FILE_MAX);

    *ret_len = 0;
    if (file == NULL || bytes == NULL) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(EXIT_FAILURE);
    }
    *ret_len = fread(bytes, 1, FILE_MAX, file);
    fclose(file);
    /* A block of exactly that size, so that the sanitizers detect a read beyond its end. */
    uint8_t *exact = malloc(*ret_len + (*ret_len == 0));
    if (exact == NULL)
        exit(EXIT_FAILURE);
    memcpy(exact, bytes, *ret_len);
    free(bytes);
    return exact;
}

/* Runs the target twice with a file and prints the result of the case. */
static void replay(const char *path)
{
    const char *name = strrchr(path, '/');
    size_t len;
    uint8_t *bytes = read_file(path, &len);

    fprintf(stderr, "%s\n", path); /* names the file if the process dies */
    (void)LLVMFuzzerTestOneInput(bytes, len);
    const int64_t live = alloc_fail_live();
    (void)LLVMFuzzerTestOneInput(bytes, len);
    const bool clean = alloc_fail_live() == live;
    free(bytes);
    failures += !clean;
    dprintf(results, "%sok %u - %s%s\n", clean ? "" : "not ", ++cases,
            name != NULL ? name + 1 : path, clean ? "" : " leaves memory behind");
}

/* Compares two directory entries by name. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Replays each file of the folder. */
static void replay_folder(const char *folder)
{
    struct dirent **list = NULL;
    int count = scandir(folder, &list, NULL, by_name);
    char path[4096];

    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
        if (list[i]->d_name[0] != '.')
            replay(path);
        free(list[i]);
    }
    free(list);
}

int main(int argc, char **argv)
{
    struct stat info;

    results = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (results < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return EXIT_FAILURE;
    for (int i = 1; i < argc; i++) {
        if (stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode))
            replay_folder(argv[i]);
        else
            replay(argv[i]);
    }
    dprintf(results, "1..%u\n", cases);
    close(results);
    return cases > 0 && failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
