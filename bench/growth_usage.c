/* SPDX-License-Identifier: MIT
 * Reads the memory and processor time that a measurement has used, and the work of the servers. */
#include "growth.h"

#include "servers_commands.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

/* Bytes before each block, which hold its size. A multiple of the alignment that malloc()
 * promises. */
#define HEADER 16

/* Allocates a block and counts it. */
static void *count_malloc(size_t size, void *userdata)
{
    struct growth_memory *memory = userdata;
    char *block = malloc(size + HEADER);
    if (block == NULL)
        return NULL;
    memcpy(block, &size, sizeof size);
    memory->live += size;
    memory->blocks++;
    if (memory->live > memory->peak)
        memory->peak = memory->live;
    return block + HEADER;
}

/* Returns the size of a block. */
static size_t size_of(const void *ptr)
{
    size_t size;
    memcpy(&size, (const char *)ptr - HEADER, sizeof size);
    return size;
}

/* Frees a block and counts it. */
static void count_free(void *ptr, void *userdata)
{
    struct growth_memory *memory = userdata;
    if (ptr == NULL)
        return;
    memory->live -= size_of(ptr);
    memory->blocks--;
    free((char *)ptr - HEADER);
}

/* Allocates a new block with the contents of an old one, and frees that one. */
static void *count_realloc(void *ptr, size_t size, void *userdata)
{
    void *block = count_malloc(size, userdata);
    if (block == NULL || ptr == NULL)
        return block;
    size_t before = size_of(ptr);
    memcpy(block, ptr, before < size ? before : size);
    count_free(ptr, userdata);
    return block;
}

/* Returns an allocator that counts live bytes, their peak and the blocks in `memory`. */
redlock_allocator_t growth_allocator(struct growth_memory *memory)
{
    return (redlock_allocator_t){sizeof(redlock_allocator_t), count_malloc, count_realloc,
                                 count_free, memory};
}

/* Returns the resident memory of this process in bytes, 0 if unknown. */
size_t growth_rss(void)
{
    unsigned long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return 0;
    int got = fscanf(file, "%lu %lu", &all, &resident);
    fclose(file);
    return got == 2 ? resident * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

/* Returns the resident memory in bytes, with shared pages divided among their processes; 0 if
 * unknown. */
size_t growth_pss(void)
{
    char line[256];
    unsigned long kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "Pss: %lu kB", &kib) == 1)
            break;
    }
    if (file != NULL)
        fclose(file);
    return kib * 1024;
}

/* Returns the processor time of this process, user and system, in microseconds. */
uint64_t growth_cpu_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Returns the number of voluntary context switches of this process until now. */
uint64_t growth_switches(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_nvcsw;
}

/* Adds the number of reads from client connections of one server. Returns 0 or -1. */
static int read_reads(const struct server *server, uint64_t *ret_reads)
{
    static const char name[] = "total_reads_processed:";
    const struct timeval timeout = {.tv_sec = 5, .tv_usec = 0};
    redisContext *context = redisConnectWithTimeout(server->host, atoi(server->port), timeout);
    bool fine =
        context != NULL && context->err == 0 && redisSetTimeout(context, timeout) == REDIS_OK;
    redisReply *reply = fine ? redisCommand(context, "INFO stats") : NULL;
    const char *at =
        reply != NULL && reply->type == REDIS_REPLY_STRING ? strstr(reply->str, name) : NULL;
    if (at != NULL)
        *ret_reads += strtoull(at + sizeof name - 1, NULL, 10);
    if (reply != NULL)
        freeReplyObject(reply);
    redisFree(context);
    return at != NULL ? 0 : -1;
}

/* Returns true for commands that scripts call. A script counts as one command of the client. */
static bool is_inner(const struct commands *commands, const char *name)
{
    static const char *const inner[] = {"del", "pexpire", "get", "pttl"};
    bool scripts = false, called = false;
    for (size_t i = 0; i < commands->count; i++)
        scripts = scripts || strncmp(commands->list[i].name, "eval", 4) == 0;
    for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++)
        called = called || strcmp(name, inner[i]) == 0;
    return scripts && called;
}

/* Reads how many commands, reads and microseconds of processor time all servers have had until now.
 * Returns 0, or -1 if a server does not reply. */
int growth_work(const struct servers *servers, struct growth_work *ret_work)
{
    struct commands commands;
    memset(ret_work, 0, sizeof *ret_work);
    if (servers_commands(servers, &commands) != 0)
        return -1;
    for (size_t i = 0; i < commands.count; i++) {
        bool ours = strcmp(commands.list[i].name, "info") == 0 ||
                    /* also sent by the clients' heartbeats */
                    strcmp(commands.list[i].name, "time") == 0;
        if (!ours && !is_inner(&commands, commands.list[i].name))
            ret_work->commands += commands.list[i].calls;
    }
    for (size_t i = 0; i < servers->count; i++) {
        if (read_reads(&servers->list[i], &ret_work->reads) != 0)
            return -1;
    }
    ret_work->cpu_us = servers_cpu_us(servers);
    return 0;
}
