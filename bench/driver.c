/* SPDX-License-Identifier: MIT
 * The part that all drivers in C share: arguments, lines on standard input and output. */
#include "driver.h"

#include "number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parses the arguments of a driver. Returns false after a line on stderr if they are not valid. */
bool driver_parse(struct driver_task *ret_task, int argc, char **argv)
{
    uint64_t first = 0, count = 0;
    if ((argc != 6 && (argc != 7 || strcmp(argv[6], "own") != 0)) ||
        !number_parse(argv[2], 0, 86400000, &ret_task->ttl_ms) ||
        !number_parse(argv[3], 0, 60000000, &ret_task->hold_us) ||
        !number_parse(argv[4], 0, 4096, &first) || !number_parse(argv[5], 1, 4096, &count)) {
        fputs("driver: SERVERS RESOURCE TTL_MS HOLD_US FIRST COUNT [own]\n", stderr);
        return false;
    }
    ret_task->servers = argv[0];
    ret_task->resource = argv[1];
    ret_task->first = (unsigned)first;
    ret_task->count = (unsigned)count;
    ret_task->own = argc == 7;
    return true;
}

/* Writes the resource of the caller with the index `caller` in this process, from 0. */
void driver_name(const struct driver_task *task, unsigned caller, char *name, size_t size)
{
    if (task->own)
        snprintf(name, size, "%s%u", task->resource, task->first + caller);
    else
        snprintf(name, size, "%s", task->resource);
}

/* Prints the line "ready". */
void driver_ready(void)
{
    puts("ready");
    fflush(stdout);
}

/* Reads the end of the next slice from standard input. Returns false at the end of input, or for 0
 * or no number. */
bool driver_next(uint64_t *ret_end_ns)
{
    char line[64];
    if (fgets(line, sizeof line, stdin) == NULL)
        return false;
    *ret_end_ns = strtoull(line, NULL, 10);
    return *ret_end_ns != 0;
}

/* Appends a record to the list, which grows as needed. */
void driver_note(struct driver_notes *notes, const struct driver_note *note)
{
    if (notes->count == notes->size) {
        size_t size = notes->size == 0 ? 4096 : notes->size * 2;
        struct driver_note *list = realloc(notes->list, size * sizeof *list);
        if (list == NULL)
            abort();
        notes->list = list;
        notes->size = size;
    }
    notes->list[notes->count++] = *note;
}

/* Prints all records of the caller, one line each, and empties the list. `caller` is its number in
 * all processes. */
void driver_print(struct driver_notes *notes, unsigned caller, const char *(*word)(int status))
{
    for (size_t i = 0; i < notes->count; i++) {
        const struct driver_note *note = &notes->list[i];
        if (note->status != 0)
            printf("failed %u %" PRIu64 " %" PRIu64 " %s\n", caller, note->want_ns, note->done_ns,
                   word(note->status));
        else
            printf("hold %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", caller,
                   note->want_ns, note->grant_ns, note->release_ns, note->done_ns);
    }
    notes->count = 0;
}

/* Prints the line "over", which ends the lines of a slice. */
void driver_over(void)
{
    puts("over");
    fflush(stdout);
}
