/* SPDX-License-Identifier: MIT
 * Compares the hiredis that the process has bound with the one that the library was compiled
 * against. Another version that was loaded first takes the calls over, and has other structs.
 *
 * The functions of a reader have the same parameters in all versions of hiredis; the structs
 * differ. So the functions are called, and no member of a struct is used before its place is known:
 * the callbacks know nothing but constants, and fill every place that a longer table may have. */
#include "node/codec.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <redlock/error.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT_OF(name)  #name
#define VALUE_OF(name) TEXT_OF(name)
#define WANTED         "libhiredis.so." VALUE_OF(HIREDIS_SONAME)

#define TABLE_MAX      16 /* functions; the longest table known has 7 */

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

#if UINTPTR_MAX > UINT32_MAX
typedef Elf64_Sym elf_symbol;
#else
typedef Elf32_Sym elf_symbol;
#endif

typedef void (*any_fn)(void);

union table {
    redisReplyObjectFunctions functions;
    any_fn places[TABLE_MAX];
};

/* What a callback returns: which function was called for the value that a reply has. */
enum mark { STRING, ARRAY, INTEGER, NIL, STATUS, ERROR, WRONG, MARKS };
static const char marks[MARKS];

static void *mark(enum mark which)
{
    return (void *)(uintptr_t)&marks[which];
}

/* True if the members of a task are where the library expects them. */
static bool fits(const redisReadTask *task, int type)
{
    return task->privdata == marks && task->type == type &&
           (task->parent == NULL || (task->parent->type == REDIS_REPLY_ARRAY &&
                                     task->parent->privdata == marks && task->idx == 0));
}

/* NULL refuses the text "no", as the decoder refuses what it does not expect. */
static void *on_string(const redisReadTask *task, char *text, size_t len)
{
    if (!fits(task, REDIS_REPLY_STRING) && !fits(task, REDIS_REPLY_STATUS) &&
        !fits(task, REDIS_REPLY_ERROR))
        return mark(WRONG);
    if (len == 2 && memcmp(text, "no", 2) == 0)
        return NULL;
    if (len != 3 || memcmp(text, "abc", 3) != 0)
        return mark(WRONG);
    return mark(task->type == REDIS_REPLY_STRING   ? STRING
                : task->type == REDIS_REPLY_STATUS ? STATUS
                                                   : ERROR);
}

static void *on_array(const redisReadTask *task, element_count elements)
{
    return mark(fits(task, REDIS_REPLY_ARRAY) && elements == 1 ? ARRAY : WRONG);
}

static void *on_integer(const redisReadTask *task, long long value)
{
    return mark(fits(task, REDIS_REPLY_INTEGER) && value == 7 ? INTEGER : WRONG);
}

static void *on_nil(const redisReadTask *task)
{
    return mark(fits(task, REDIS_REPLY_STRING) ? NIL : WRONG);
}

static void *on_other(const redisReadTask *task)
{
    (void)task;
    return mark(WRONG);
}

static void free_object(void *object)
{
    (void)object; /* a constant */
}

static void fill(union table *table)
{
    for (size_t i = 0; i < TABLE_MAX; i++)
        table->places[i] = (any_fn)on_other;
    table->functions.createString = on_string;
    table->functions.createArray = on_array;
    table->functions.createInteger = on_integer;
    table->functions.createNil = on_nil;
    table->functions.freeObject = free_object;
}

/* Returns 1 if all `size` bytes can be read, 0 if not, -1 if there is no descriptor to find out.
 * The kernel looks: a pipe takes what is readable. */
static int is_readable(const void *bytes, size_t size)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    ssize_t written = write(ends[1], bytes, size);
    close(ends[0]);
    close(ends[1]);
    return written == (ssize_t)size;
}

static bool is_at_rest(const redisReader *reader)
{
    return reader->err == 0 && reader->ridx == -1 && reader->pos == reader->len;
}

/* A new reader has few values that are not zero; they must be where the library expects them. */
static bool is_new(const redisReader *reader, const union table *table)
{
    return is_at_rest(reader) && reader->len == 0 && reader->buf != NULL && reader->reply == NULL &&
           reader->maxbuf == REDIS_READER_MAX_BUF && reader->fn == &table->functions;
}

/* REDLOCK_OK: the reader makes `wanted` of these bytes, and nothing of all but the last of them. */
static int read_one(redisReader *reader, const char *bytes, enum mark wanted)
{
    size_t len = strlen(bytes);
    void *object = NULL;

    if (redisReaderFeed(reader, bytes, len - 1) != REDIS_OK)
        return reader->err == REDIS_ERR_OOM ? REDLOCK_ENOMEM : REDLOCK_ELIBRARY;
    if (redisReaderGetReply(reader, &object) != REDIS_OK || object != NULL || is_at_rest(reader))
        return REDLOCK_ELIBRARY;
    if (redisReaderFeed(reader, bytes + len - 1, 1) != REDIS_OK)
        return reader->err == REDIS_ERR_OOM ? REDLOCK_ENOMEM : REDLOCK_ELIBRARY;
    if (redisReaderGetReply(reader, &object) != REDIS_OK || object != mark(wanted) ||
        !is_at_rest(reader))
        return REDLOCK_ELIBRARY;
    return REDLOCK_OK;
}

static int read_all(redisReader *reader)
{
    static const struct {
        const char *bytes;
        enum mark wanted;
    } replies[] = {
        {"$3\r\nabc\r\n", STRING},      {":7\r\n", INTEGER}, {"$-1\r\n", NIL},
        {"+abc\r\n", STATUS},           {"-abc\r\n", ERROR}, {"*1\r\n:7\r\n", ARRAY},
        {"*1\r\n$3\r\nabc\r\n", ARRAY},
    };
    static const char refused[] = "$2\r\nno\r\n";
    void *object = NULL;
    int error = REDLOCK_OK;

    for (size_t i = 0; error == REDLOCK_OK && i < sizeof replies / sizeof replies[0]; i++)
        error = read_one(reader, replies[i].bytes, replies[i].wanted);
    if (error != REDLOCK_OK)
        return error;
    if (redisReaderFeed(reader, refused, sizeof refused - 1) != REDIS_OK)
        return REDLOCK_ENOMEM;
    return redisReaderGetReply(reader, &object) == REDIS_ERR && reader->err == REDIS_ERR_OOM
               ? REDLOCK_OK
               : REDLOCK_ELIBRARY;
}

static int check_reader(void)
{
    union table table;

    fill(&table);
    redisReader *reader = redisReaderCreateWithFunctions(&table.functions);
    if (reader == NULL)
        return REDLOCK_ENOMEM;
    int readable = is_readable(reader, sizeof *reader);
    int error = readable < 0 ? REDLOCK_ESYS : REDLOCK_ELIBRARY;
    if (readable > 0 && is_new(reader, &table)) {
        reader->privdata = (void *)(uintptr_t)marks;
        reader->maxbuf = 0; /* as the decoder sets it */
        error = read_all(reader);
    }
    redisReaderFree(reader);
    return error;
}

/* Looks up what the loader knows of an address. false: nothing, or the address is not that of the
 * function but of a stub: where a program with fixed addresses takes the address of a function, all
 * files of the process get the stub in that program as its address. */
static bool find(void *address, Dl_info *info)
{
#ifdef __GLIBC__
    void *found = NULL;

    if (dladdr1(address, info, &found, RTLD_DL_SYMENT) == 0)
        return false;
    const elf_symbol *symbol = found;
    return symbol == NULL || symbol->st_shndx != SHN_UNDEF;
#else
    return dladdr(address, info) != 0;
#endif
}

/* Returns the file that a function is in; "" if that is not known. */
static const char *file_of(any_fn function)
{
    Dl_info info;
    void *address;

    memcpy(&address, &function, sizeof address);
    return find(address, &info) && info.dli_fname != NULL ? info.dli_fname : "";
}

static void report_mismatch(const char *first, const char *second, char *text, size_t size)
{
    bool two = strcmp(first, second) != 0;

    snprintf(text, size,
             "%s was compiled against hiredis %d.%d.%d (" WANTED
             "), but the process has bound another one: %s%s%s; load the same one in the whole "
             "process, or build this library with -Dhiredis=static",
             file_of((any_fn)rl_codec_check), HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH,
             first[0] != '\0' ? first : "in a file that is not known", two ? " and " : "",
             two ? second : "");
}

int rl_codec_check(char *text, size_t size)
{
    static const any_fn functions[] = {
        (any_fn)redisReaderCreateWithFunctions,
        (any_fn)redisReaderFeed,
        (any_fn)redisReaderGetReply,
        (any_fn)redisReaderFree,
    };
    const char *file = "";

    text[0] = '\0';
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const char *other = file_of(functions[i]);
        if (file[0] == '\0')
            file = other;
        if (other[0] == '\0' || strcmp(other, file) == 0)
            continue;
        report_mismatch(file, other, text, size);
        return REDLOCK_ELIBRARY;
    }
    int error = check_reader();
    if (error == REDLOCK_ELIBRARY)
        report_mismatch(file, file, text, size);
    return error;
}
