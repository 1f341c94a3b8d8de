/* SPDX-License-Identifier: MIT
 * A library with the reply reader of hiredis. OTHER selects the difference to the hiredis that
 * libredlock is compiled against: none (SAME), another struct of the reader, another table of
 * functions, another struct of the task; or the library has only one of the functions (FUNCTION).
 */
#include <hiredis/hiredis.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Values of OTHER. */
#define SAME     0
#define READER   1
#define TABLE    2
#define TASK     3
#define FUNCTION 4

#if OTHER == FUNCTION

/* Frees the reader, as the function of hiredis with this name does. */
void redisReaderFree(redisReader *reader)
{
    free(reader);
}

#else

/* The reader: that of hiredis, or one with its fields in another order. */
#if OTHER == READER
struct reader {
    redisReplyObjectFunctions *fn;
    void *privdata;
    long long depth;
    char *buf;
    size_t pos, len, maxbuf;
    int ridx, err;
};
#else
typedef redisReader reader_t;
#define reader redisReader
#endif

/* The description of one value that the reader passes to its functions: that of hiredis, or a
 * larger one. */
#if OTHER == TASK
struct task {
    long long attributes;
    int type, idx;
    struct task *parent;
    void *privdata;
    char rest[64];
};
#else
#define task redisReadTask
#endif

/* The types of the functions that make the values of a reply. */
typedef void *(*string_fn)(const struct task *, char *, size_t);
#if HIREDIS_MAJOR >= 1
typedef void *(*array_fn)(const struct task *, size_t);
#else
typedef void *(*array_fn)(const struct task *, int);
#endif
typedef void *(*integer_fn)(const struct task *, long long);
typedef void *(*nil_fn)(const struct task *);
typedef void (*any_fn)(void);

/* Returns the function of the reader's table at this offset; with OTHER == TABLE the next one. */
static any_fn function_at(const struct reader *r, size_t offset)
{
    const size_t more = OTHER == TABLE ? sizeof(any_fn) : 0;
    any_fn function;

    memcpy(&function, (const char *)r->fn + offset + more, sizeof function);
    return function;
}
#define FUNCTION_OF(r, type, name) ((type)function_at(r, offsetof(redisReplyObjectFunctions, name)))

/* Creates a reader that builds replies with the functions `fn`. NULL without memory. */
redisReader *redisReaderCreateWithFunctions(redisReplyObjectFunctions *fn)
{
    struct reader *r = calloc(1, sizeof *r);

    if (r == NULL)
        return NULL;
    r->buf = calloc(1, 1);
    r->fn = fn;
    r->ridx = -1;
    r->maxbuf = REDIS_READER_MAX_BUF;
    return (redisReader *)r;
}

/* Frees the reader and its buffer. */
void redisReaderFree(redisReader *opaque)
{
    struct reader *r = (struct reader *)opaque;

    free(r->buf);
    free(r);
}

/* Appends bytes to the buffer of the reader. */
int redisReaderFeed(redisReader *opaque, const char *bytes, size_t len)
{
    struct reader *r = (struct reader *)opaque;
    char *more = realloc(r->buf, r->len + len + 1);

    if (more == NULL)
        return REDIS_ERR;
    memcpy(more + r->len, bytes, len);
    r->buf = more;
    r->len += len;
    r->buf[r->len] = '\0';
    return REDIS_OK;
}

/* Reads one value from *at on. Returns NULL if it is not complete, or if a function refused it, and
 * then sets r->err. */
static void *read_value(struct reader *r, char **at, struct task *parent)
{
    struct task task = {.idx = parent != NULL ? 0 : -1, .parent = parent, .privdata = r->privdata};
    char kind = **at, *text = *at + 1, *end = strstr(*at, "\r\n");
    void *object;

    if (end == NULL)
        return NULL;
    long long number = atoll(text);
    *at = end + 2;
    if (kind == '$' && number >= 0) {
        text = end + 2;
        end = text + number;
        if (strlen(text) < (size_t)number + 2)
            return NULL;
        *at = end + 2;
    }
    task.type = kind == '+'   ? REDIS_REPLY_STATUS
                : kind == '-' ? REDIS_REPLY_ERROR
                : kind == ':' ? REDIS_REPLY_INTEGER
                : kind == '*' ? REDIS_REPLY_ARRAY
                              : REDIS_REPLY_STRING;
    if (kind == ':')
        object = FUNCTION_OF(r, integer_fn, createInteger)(&task, number);
    else if (kind == '$' && number < 0)
        object = FUNCTION_OF(r, nil_fn, createNil)(&task);
    else if (kind == '*')
        object = FUNCTION_OF(r, array_fn, createArray)(&task, 1);
    else
        object = FUNCTION_OF(r, string_fn, createString)(&task, text, (size_t)(end - text));
    r->err = object == NULL ? REDIS_ERR_OOM : 0;
    if (object != NULL && kind == '*' && read_value(r, at, &task) == NULL)
        return NULL;
    return object;
}

/* Stores the next complete reply in *ret, or NULL if there is none yet. */
int redisReaderGetReply(redisReader *opaque, void **ret)
{
    struct reader *r = (struct reader *)opaque;
    char *at = r->buf + r->pos;

    *ret = NULL;
    if (r->len == r->pos)
        return REDIS_OK;
    *ret = read_value(r, &at, NULL);
    r->ridx = *ret != NULL ? -1 : 0;
    if (*ret != NULL)
        r->pos = (size_t)(at - r->buf);
    return r->err != 0 ? REDIS_ERR : REDIS_OK;
}

#endif
