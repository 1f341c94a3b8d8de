/* SPDX-License-Identifier: MIT
 * Compares the hiredis that the process has bound with the one that the library was compiled
 * against. If another version was loaded first, the library's calls go to that version, whose
 * structs may differ.
 *
 * The functions of a reader have the same parameters in all versions of hiredis; the structs
 * differ. So the check calls the functions, and uses no member of a struct before it knows its
 * offset. The reply functions use only constants. They fill all places of a table that is longer
 * than that of any known version. */
#include "node/codec.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <redlock/error.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The string literal of a name, and of a macro's value. */
#define TEXT_OF(name)  #name
#define VALUE_OF(name) TEXT_OF(name)
#define WANTED         "libhiredis.so." VALUE_OF(HIREDIS_SONAME) /* file of the compiled version */

#define TABLE_MAX      16 /* functions; the longest table of a known version has 7 */

/* The type of the number of elements that the reader passes to createArray. */
#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

/* An entry of the symbol table of a file of this process. */
#if UINTPTR_MAX > UINT32_MAX
typedef Elf64_Sym elf_symbol;
#else
typedef Elf32_Sym elf_symbol;
#endif

/* A function of any type; converted back before it is called. */
typedef void (*any_fn)(void);

/* The table of reply functions that is passed to the reader. Owned by check_reader(). */
union table {
    redisReplyObjectFunctions functions; /* as the compiled version lays the table out */
    any_fn places[TABLE_MAX];            /* the same memory, and room for a longer table */
};

/* What a reply function returns to the reader: the type of the value that it was called for, or
 * WRONG if its arguments were not those of the reply that was fed. MARKS is the number of marks. */
enum mark { STRING, ARRAY, INTEGER, NIL, STATUS, ERROR, WRONG, MARKS };
/* One byte for each mark. A reply function returns the address of a byte; the values do not matter.
 * The address of the first byte is also the `privdata` of the reader. */
static const char marks[MARKS];

/* Returns the address that stands for this mark: what a reply function returns to the reader. */
static void *mark(enum mark which)
{
    return (void *)(uintptr_t)&marks[which];
}

/* Returns true if the members of the task have the values that they must have for a value of this
 * type (REDIS_REPLY_*) in one of the replies of read_all(). Then they are at the offsets that the
 * library expects. */
static bool fits(const redisReadTask *task, int type)
{
    return task->privdata == marks && task->type == type &&
           (task->parent == NULL || (task->parent->type == REDIS_REPLY_ARRAY &&
                                     task->parent->privdata == marks && task->idx == 0));
}

/* Returns the mark of a status, an error or a bulk string with the text "abc". Returns NULL for the
 * text "no", as the decoder does when it refuses a reply. */
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

/* Returns the mark of an array of one element. */
static void *on_array(const redisReadTask *task, element_count elements)
{
    return mark(fits(task, REDIS_REPLY_ARRAY) && elements == 1 ? ARRAY : WRONG);
}

/* Returns the mark of the integer 7. */
static void *on_integer(const redisReadTask *task, long long value)
{
    return mark(fits(task, REDIS_REPLY_INTEGER) && value == 7 ? INTEGER : WRONG);
}

/* Returns the mark of a nil bulk string. */
static void *on_nil(const redisReadTask *task)
{
    return mark(fits(task, REDIS_REPLY_STRING) ? NIL : WRONG);
}

/* Fills the places of reply functions that only other versions have. None of the replies that are
 * fed needs them, so a call returns WRONG. */
static void *on_other(const redisReadTask *task)
{
    (void)task;
    return mark(WRONG);
}

/* Does nothing: the marks are constants. */
static void free_object(void *object)
{
    (void)object;
}

/* Fills the table: the reply functions at the offsets that the library expects, and on_other()
 * elsewhere. */
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

/* Returns 1 if `size` bytes at `bytes` are readable memory, 0 if not, -1 if there is no descriptor
 * for the test. Writes them to a pipe: for unreadable memory the kernel returns an error instead of
 * a signal. */
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

/* Returns true if the reader is between two replies, without an error and without unread bytes. */
static bool is_at_rest(const redisReader *reader)
{
    return reader->err == 0 && reader->ridx == -1 && reader->pos == reader->len;
}

/* Returns true if the members of a reader that was just created have their initial values at the
 * offsets that the library expects. `table` is the one that the reader was created with. */
static bool is_new(const redisReader *reader, const union table *table)
{
    return is_at_rest(reader) && reader->len == 0 && reader->buf != NULL && reader->reply == NULL &&
           reader->maxbuf == REDIS_READER_MAX_BUF && reader->fn == &table->functions;
}

/* Feeds one reply, a terminated string, with its last byte separately. Returns REDLOCK_OK if the
 * reader returns the mark `wanted` after the last byte and no reply before the last byte. Else
 * returns REDLOCK_ENOMEM or REDLOCK_ELIBRARY. */
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

/* Feeds replies of all kinds, and one that the reply function refuses with NULL. Returns REDLOCK_OK
 * if the reader reads all of them as the compiled one, else REDLOCK_ENOMEM or REDLOCK_ELIBRARY. */
static int read_all(redisReader *reader)
{
    static const struct {
        const char *bytes; /* the reply */
        enum mark wanted;  /* what the reader must return for it */
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

/* Creates a reader of the bound hiredis and feeds it replies. Returns REDLOCK_OK if it reads them
 * as the compiled one, else REDLOCK_ENOMEM, REDLOCK_ESYS (no descriptor) or REDLOCK_ELIBRARY. */
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
        reader->maxbuf = 0; /* as in codec.c */
        error = read_all(reader);
    }
    redisReaderFree(reader);
    return error;
}

/* Looks up the file that contains the address of a function, and stores its name in `*info`.
 * Returns false if the file is unknown, or if the address is that of a stub in the program: in a
 * program that is linked at fixed addresses, a function's address may be the address of such a
 * stub, for all files of the process. */
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

/* Returns the path of the file that contains a function; "": unknown. The string belongs to the
 * dynamic loader. */
static const char *file_of(any_fn function)
{
    Dl_info info;
    void *address;

    memcpy(&address, &function, sizeof address);
    return find(address, &info) && info.dli_fname != NULL ? info.dli_fname : "";
}

/* Writes the message of REDLOCK_ELIBRARY to `text` of `size` bytes. `first` and `second` are paths
 * of files from which the functions of hiredis were bound: equal if there is only one, "" if
 * unknown. */
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

/* Checks that all functions of hiredis come from one file, and that they read replies as the
 * compiled version does. Returns REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ESYS or REDLOCK_ELIBRARY; only
 * the last one comes with a message in `text`. */
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
