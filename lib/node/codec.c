/* SPDX-License-Identifier: MIT
 * Reads replies with the reader of hiredis and with reply functions of this file. The default reply
 * functions of hiredis reserve the memory that a header names, so a header of 13 bytes could
 * reserve gigabytes. The functions here enforce limits and allocate nothing. The most frequent
 * replies are parsed here without the reader.
 *
 * Received bytes stay at `ahead` while the reader is between two replies. rl_decoder_next_plain()
 * parses a frequent reply there. If the next reply is another one, rl_decoder_next() passes all
 * bytes at `ahead` to the reader, which copies them and calls create_string() and its like for each
 * value.
 */
#include "node/codec.h"

#include "core/line.h"

#include <hiredis/hiredis.h>
#include <sodium.h>
#include <string.h>

#define DIGITS_MAX                                                                                 \
    18 /* most digits that read_integer() parses: all such numbers fit into int64_t */
#define KEPT_MAX ((size_t)16 * 1024) /* bytes; a reader that has buffered more is replaced */

static_assert(RL_INFO_MAX >= RL_LINE_VALUE_MAX, "a reply to LINE_LIST is a long reply");

/* The type of the number of elements that the reader passes to createArray. */
#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

/* What the build has for TLS; lib/meson.build sets it. */
#ifndef RL_TLS_BUILD
#define RL_TLS_BUILD "without TLS"
#endif

/* The string literal of a macro's value, and of a version number from three such macros. */
#define TEXT_OF(number)                 #number
#define VERSION_OF(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

/* Returns the names and versions of the libraries that this build was compiled against. */
const char *rl_codec_libraries(void)
{
    return "hiredis " VERSION_OF(HIREDIS_MAJOR, HIREDIS_MINOR,
                                 HIREDIS_PATCH) ", libsodium " SODIUM_VERSION_STRING
                                                ", " RL_TLS_BUILD;
}

/* Marks the reply that is being read as refused. Returns NULL; a reply function that returns NULL
 * makes the reader fail. */
static void *refuse(struct rl_decoder *decoder)
{
    decoder->refused = true;
    return NULL;
}

/* Appends an element of an array to decoder->joined, with a blank in front unless nothing is there
 * yet. Returns the reply; NULL if the element is no bulk string or does not fit (refused). */
static void *join(struct rl_decoder *decoder, const redisReadTask *task, const char *text,
                  size_t len)
{
    struct rl_reply *reply = &decoder->reply;
    size_t gap = reply->len != 0;

    if (task->type != REDIS_REPLY_STRING || len + gap > sizeof decoder->joined - reply->len)
        return refuse(decoder);
    memcpy(decoder->joined + reply->len, " ", gap);
    memcpy(decoder->joined + reply->len + gap, text, len);
    reply->len += gap + len;
    return reply;
}

/* Appends an element of an array to decoder->texts. `text` NULL: the element is nil or an integer,
 * whose value is not needed. Returns the reply; NULL if the element does not fit (refused). */
static void *add_text(struct rl_decoder *decoder, const char *text, size_t len)
{
    struct rl_texts *texts = decoder->texts;

    if (texts->count == RL_TEXTS_MAX || len > sizeof texts->bytes - texts->used)
        return refuse(decoder);
    char *to = texts->bytes + texts->used;
    if (len != 0)
        memcpy(to, text, len);
    texts->list[texts->count++] = (struct rl_arg){text != NULL ? to : NULL, len};
    texts->used += len;
    return &decoder->reply;
}

/* The next four functions are called by the reader for each value of a reply. They return a pointer
 * to the decoder's reply, or NULL if the value is refused. */

/* Stores a status, an error or a bulk string, which is the whole reply or an element of an array.
 * The text of a whole reply is copied to decoder->text; of a long status or error, the beginning.
 */
static void *create_string(const redisReadTask *task, char *text, size_t len)
{
    struct rl_decoder *decoder = task->privdata;

    if (task->parent != NULL && decoder->texts != NULL)
        return add_text(decoder, text, len);
    if (task->parent != NULL)
        return join(decoder, task, text, len);
    if (len > decoder->bulk_max && task->type == REDIS_REPLY_STRING)
        return refuse(decoder);
    if (len > decoder->bulk_max)
        len = decoder->bulk_max;
    decoder->reply.kind = task->type == REDIS_REPLY_STATUS  ? RL_REPLY_STATUS
                          : task->type == REDIS_REPLY_ERROR ? RL_REPLY_ERROR
                                                            : RL_REPLY_BULK;
    /* The reader may move its buffer before the reply is handled. */
    memcpy(decoder->text->bytes, text, len);
    decoder->text->bytes[len] = '\0';
    decoder->reply.text = decoder->text->bytes;
    decoder->reply.len = len;
    return &decoder->reply;
}

/* Begins an array of `elements` elements; the reader calls the other functions for each of them.
 * Refuses too many elements, and nested arrays unless decoder->texts is set. An array in a nested
 * array is always refused: hiredis 1.x has no limit of its own, and keeps memory for each level. */
static void *create_array(const redisReadTask *task, element_count elements)
{
    struct rl_decoder *decoder = task->privdata;

    if (task->parent != NULL && task->parent->parent != NULL)
        return refuse(decoder);
    if (decoder->texts != NULL && task->type == REDIS_REPLY_ARRAY) {
        if (task->parent == NULL) {
            decoder->texts->count = 0;
            decoder->texts->used = 0;
        }
        decoder->reply = (struct rl_reply){.kind = RL_REPLY_ARRAY, .integer = (int64_t)elements};
        return (size_t)elements <= RL_TEXTS_MAX ? &decoder->reply : refuse(decoder);
    }
    if (task->type != REDIS_REPLY_ARRAY || task->parent != NULL || elements < 1 ||
        (size_t)elements > decoder->elements_max)
        return refuse(decoder);
    decoder->reply = (struct rl_reply){
        .kind = RL_REPLY_ARRAY, .integer = (int64_t)elements, .text = decoder->joined};
    return &decoder->reply;
}

/* Stores an integer that is the whole reply. As an element of an array it is refused, unless
 * decoder->texts is set. */
static void *create_integer(const redisReadTask *task, long long value)
{
    struct rl_decoder *decoder = task->privdata;

    if (task->parent != NULL && decoder->texts != NULL)
        return add_text(decoder, NULL, 0);
    if (task->parent != NULL)
        return refuse(decoder);
    decoder->reply = (struct rl_reply){.kind = RL_REPLY_INTEGER, .integer = value};
    return &decoder->reply;
}

/* Stores a nil bulk string that is the whole reply, and refuses any other nil as the whole reply. A
 * nil as an element of an array is refused, unless decoder->texts is set. */
static void *create_nil(const redisReadTask *task)
{
    struct rl_decoder *decoder = task->privdata;

    if (task->parent != NULL && decoder->texts != NULL)
        return add_text(decoder, NULL, 0);
    if (task->type != REDIS_REPLY_STRING || task->parent != NULL)
        return refuse(decoder); /* a nil array, or the null of RESP3: no request has such a reply */
    decoder->reply = (struct rl_reply){.kind = RL_REPLY_NIL};
    return &decoder->reply;
}

/* Does nothing: the object of a reply is a part of the decoder. */
static void free_object(void *object)
{
    (void)object;
}

/* The reply functions that the reader calls. For kinds of RESP3, which have no function here, the
 * reader reports a protocol error. */
static redisReplyObjectFunctions reply_functions = {
    .createString = create_string,
    .createArray = create_array,
    .createInteger = create_integer,
    .createNil = create_nil,
    .freeObject = free_object,
};

/* Returns a new reader that calls reply_functions for this decoder. NULL: no memory. */
static redisReader *create_reader(struct rl_decoder *decoder)
{
    redisReader *reader = redisReaderCreateWithFunctions(&reply_functions);

    if (reader != NULL) {
        reader->privdata = decoder;
        reader->maxbuf = 0; /* the reader never shrinks its buffer: see shrink() */
    }
    return reader;
}

/* Opens the decoder with a new reader. Returns false without memory; the decoder is unchanged then.
 */
bool rl_decoder_open(struct rl_decoder *decoder, struct rl_reply_text *text)
{
    redisReader *reader = create_reader(decoder);

    if (reader == NULL)
        return false;
    *decoder = (struct rl_decoder){.reader = reader, .text = text, .bulk_max = RL_BULK_MAX};
    return true;
}

/* Frees the reader, if the decoder is open. */
void rl_decoder_close(struct rl_decoder *decoder)
{
    if (decoder->reader != NULL)
        redisReaderFree(decoder->reader);
    decoder->reader = NULL;
}

/* Replaces a reader that is between two replies and whose buffer has grown beyond KEPT_MAX. hiredis
 * 0.14 can shrink the buffer itself, but aborts the process if there is no memory for the smaller
 * one. */
static void shrink(struct rl_decoder *decoder)
{
    const redisReader *old = decoder->reader;

    if (decoder->len_max <= KEPT_MAX || old->len != 0 || old->ridx != -1)
        return;
    redisReader *reader = create_reader(decoder);
    if (reader == NULL)
        return; /* keeps the large reader */
    redisReaderFree(decoder->reader);
    decoder->reader = reader;
    decoder->len_max = 0;
}

/* Returns whether the reader is between two replies, without an error and without unread bytes. */
bool rl_decoder_is_at_rest(const struct rl_decoder *decoder)
{
    const redisReader *reader = decoder->reader;

    return reader->ridx == -1 && reader->pos == reader->len && reader->err == 0;
}

/* Passes bytes to the reader, which copies them. Returns false without memory, or if more than
 * RL_UNPARSED_MAX bytes hold no complete reply. */
static bool feed_reader(struct rl_decoder *decoder, const char *bytes, size_t len)
{
    shrink(decoder);
    redisReader *reader = decoder->reader;
    if (redisReaderFeed(reader, bytes, len) != REDIS_OK)
        return false;
    if (reader->len > decoder->len_max)
        decoder->len_max = reader->len;
    return reader->len - reader->pos <= RL_UNPARSED_MAX;
}

/* Passes the bytes at `ahead`, if there are any, to the reader. Returns as feed_reader(). */
static bool feed_ahead(struct rl_decoder *decoder)
{
    size_t len = decoder->ahead_len;

    decoder->ahead_len = 0;
    return len == 0 || feed_reader(decoder, decoder->ahead, len);
}

/* Hands received bytes to the decoder. Keeps them at `ahead` if the reader is between two replies,
 * else passes them on to the reader. Returns false without memory, or if too many bytes hold no
 * complete reply. */
bool rl_decoder_feed(struct rl_decoder *decoder, const char *bytes, size_t len)
{
    if (!feed_ahead(decoder))
        return false;
    if (!rl_decoder_is_at_rest(decoder))
        return feed_reader(decoder, bytes, len);
    decoder->ahead = bytes;
    decoder->ahead_len = len;
    return true;
}

/* Returns true if the last failure of the decoder was a lack of memory. */
bool rl_decoder_lacks_memory(const struct rl_decoder *decoder)
{
    const redisReader *reader = decoder->reader;

    /* The reader also reports a refused reply as a lack of memory. */
    return reader->err == REDIS_ERR_OOM && !decoder->refused;
}

/* Removes the `len` bytes from the start of `ahead`. Returns false, and removes nothing, if `ahead`
 * begins otherwise. */
static bool skip(struct rl_decoder *decoder, const char *bytes, size_t len)
{
    if (decoder->ahead_len < len || memcmp(decoder->ahead, bytes, len) != 0)
        return false;
    decoder->ahead += len;
    decoder->ahead_len -= len;
    return true;
}

/* Reads a complete integer reply of up to DIGITS_MAX digits, such as ":1\r\n", from the start of
 * `ahead` into decoder->reply. Returns false, and removes nothing, if `ahead` begins otherwise. */
static bool read_integer(struct rl_decoder *decoder)
{
    const char *at = decoder->ahead;
    const char *end = at + decoder->ahead_len;
    int64_t value = 0;

    if (at == end || *at++ != ':')
        return false;
    bool negative = at != end && *at == '-';
    at += negative;
    const char *digits = at;
    for (; at != end && *at >= '0' && *at <= '9' && at - digits < DIGITS_MAX; at++)
        value = 10 * value + (*at - '0');
    if (at == digits || end - at < 2 || at[0] != '\r' || at[1] != '\n')
        return false;
    decoder->ahead = at + 2;
    decoder->ahead_len = (size_t)(end - decoder->ahead);
    decoder->reply =
        (struct rl_reply){.kind = RL_REPLY_INTEGER, .integer = negative ? -value : value};
    return true;
}

/* Reads OK, nil or an integer from the start of `ahead` into decoder->reply: nearly all replies
 * that are votes. Returns 1; 0, and removes nothing, if the reader must parse the next reply. */
int rl_decoder_next_plain(struct rl_decoder *decoder)
{
    if (skip(decoder, "+OK\r\n", 5)) {
        decoder->reply = (struct rl_reply){.kind = RL_REPLY_STATUS, .text = "OK", .len = 2};
        return 1;
    }
    if (skip(decoder, ":1\r\n", 4)) { /* as read_integer() does, but the reply to most undos */
        decoder->reply = (struct rl_reply){.kind = RL_REPLY_INTEGER, .integer = 1};
        return 1;
    }
    if (skip(decoder, "$-1\r\n", 5)) {
        decoder->reply = (struct rl_reply){.kind = RL_REPLY_NIL};
        return 1;
    }
    return read_integer(decoder);
}

/* Reads the next reply into decoder->reply. Returns 1; 0 if more bytes are needed; -1 if the bytes
 * violate the protocol, the reply is beyond a limit, or there is no memory. */
int rl_decoder_next(struct rl_decoder *decoder)
{
    void *object = NULL;

    decoder->refused = false;
    if (decoder->ahead_len != 0 && rl_decoder_next_plain(decoder))
        return 1;
    if (rl_decoder_is_done(decoder))
        return 0; /* an empty reader, if called, would count as inside of a reply */
    if (!feed_ahead(decoder))
        return -1;
    if (redisReaderGetReply(decoder->reader, &object) != REDIS_OK || decoder->refused)
        return -1;
    if (object == NULL)
        return 0;
    /* A newer reader returns other pointers for RESP3 values that have no function here. */
    return object == &decoder->reply ? 1 : -1;
}
