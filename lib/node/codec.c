/* SPDX-License-Identifier: MIT
 * hiredis as a codec. Its default reply objects would let a 13-byte header reserve gigabytes; ours
 * take texts up to a limit, integers, nil, and flat arrays of a few short texts where one is
 * expected, and allocate nothing. */
#include "node/codec.h"

#include <hiredis/hiredis.h>
#include <sodium.h>
#include <string.h>

#define DIGITS_MAX 18
#define KEPT_MAX   ((size_t)16 * 1024) /* an empty buffer that once held no more is kept */

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

#define TEXT_OF(number)                 #number
#define VERSION_OF(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *rl_codec_libraries(void)
{
    return "hiredis " VERSION_OF(HIREDIS_MAJOR, HIREDIS_MINOR,
                                 HIREDIS_PATCH) ", libsodium " SODIUM_VERSION_STRING;
}

static void *refuse(struct rl_decoder *decoder)
{
    decoder->refused = true;
    return NULL;
}

/* One more element behind those that are there, after a blank. */
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

/* The next word of an array; NULL: nil. Numbers are not looked at. */
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

static void *create_string(const redisReadTask *task, char *text, size_t len)
{
    struct rl_decoder *decoder = task->privdata;

    if (task->parent != NULL && decoder->texts != NULL)
        return add_text(decoder, text, len);
    if (task->parent != NULL)
        return join(decoder, task, text, len);
    if (len > decoder->bulk_max)
        return refuse(decoder);
    decoder->reply.kind = task->type == REDIS_REPLY_STATUS  ? RL_REPLY_STATUS
                          : task->type == REDIS_REPLY_ERROR ? RL_REPLY_ERROR
                                                            : RL_REPLY_BULK;
    /* The reader may move its buffer before we look: keep a copy. */
    memcpy(decoder->text->bytes, text, len);
    decoder->text->bytes[len] = '\0';
    decoder->reply.text = decoder->text->bytes;
    decoder->reply.len = len;
    return &decoder->reply;
}

static void *create_array(const redisReadTask *task, element_count elements)
{
    struct rl_decoder *decoder = task->privdata;

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

static void *create_nil(const redisReadTask *task)
{
    struct rl_decoder *decoder = task->privdata;

    if (task->parent != NULL && decoder->texts != NULL)
        return add_text(decoder, NULL, 0);
    if (task->type != REDIS_REPLY_STRING || task->parent != NULL)
        return refuse(decoder); /* a nil array, or the null of RESP3: no answer of ours */
    decoder->reply = (struct rl_reply){.kind = RL_REPLY_NIL};
    return &decoder->reply;
}

static void free_object(void *object)
{
    (void)object; /* lives in the decoder */
}

/* Kinds that are not listed (RESP3) are protocol errors to the reader. */
static redisReplyObjectFunctions reply_functions = {
    .createString = create_string,
    .createArray = create_array,
    .createInteger = create_integer,
    .createNil = create_nil,
    .freeObject = free_object,
};

static redisReader *create_reader(struct rl_decoder *decoder)
{
    redisReader *reader = redisReaderCreateWithFunctions(&reply_functions);

    if (reader != NULL) {
        reader->privdata = decoder;
        reader->maxbuf = 0; /* never gives back its buffer: see shrink() */
    }
    return reader;
}

bool rl_decoder_open(struct rl_decoder *decoder, struct rl_reply_text *text)
{
    redisReader *reader = create_reader(decoder);

    if (reader == NULL)
        return false;
    *decoder = (struct rl_decoder){.reader = reader, .text = text, .bulk_max = RL_BULK_MAX};
    return true;
}

void rl_decoder_close(struct rl_decoder *decoder)
{
    if (decoder->reader != NULL)
        redisReaderFree(decoder->reader);
    decoder->reader = NULL;
}

/* Gives back a buffer that was large once and is empty. hiredis 0.14 would do it by itself, but
 * then it ends the process if there is no memory for a small one. */
static void shrink(struct rl_decoder *decoder)
{
    const redisReader *old = decoder->reader;

    if (decoder->len_max <= KEPT_MAX || old->len != 0 || old->ridx != -1)
        return;
    redisReader *reader = create_reader(decoder);
    if (reader == NULL)
        return; /* the large one does */
    redisReaderFree(decoder->reader);
    decoder->reader = reader;
    decoder->len_max = 0;
}

static bool is_at_rest(const struct rl_decoder *decoder)
{
    const redisReader *reader = decoder->reader;

    return reader->ridx == -1 && reader->pos == reader->len && reader->err == 0;
}

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

/* What lies ahead goes to the reader. */
static bool feed_ahead(struct rl_decoder *decoder)
{
    size_t len = decoder->ahead_len;

    decoder->ahead_len = 0;
    return len == 0 || feed_reader(decoder, decoder->ahead, len);
}

bool rl_decoder_feed(struct rl_decoder *decoder, const char *bytes, size_t len)
{
    if (!feed_ahead(decoder))
        return false;
    if (!is_at_rest(decoder))
        return feed_reader(decoder, bytes, len);
    decoder->ahead = bytes;
    decoder->ahead_len = len;
    return true;
}

bool rl_decoder_lacks_memory(const struct rl_decoder *decoder)
{
    const redisReader *reader = decoder->reader;

    /* To the reader a refused reply is one that there was no memory for. */
    return reader->err == REDIS_ERR_OOM && !decoder->refused;
}

static bool skip(struct rl_decoder *decoder, const char *bytes, size_t len)
{
    if (decoder->ahead_len < len || memcmp(decoder->ahead, bytes, len) != 0)
        return false;
    decoder->ahead += len;
    decoder->ahead_len -= len;
    return true;
}

/* ":1\r\n": a few digits, which cannot overflow. */
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

/* Nearly every answer to a vote is one of these three. Anything else is the reader's. */
static bool read_plain(struct rl_decoder *decoder)
{
    if (skip(decoder, "+OK\r\n", 5)) {
        decoder->reply = (struct rl_reply){.kind = RL_REPLY_STATUS, .text = "OK", .len = 2};
        return true;
    }
    if (skip(decoder, "$-1\r\n", 5)) {
        decoder->reply = (struct rl_reply){.kind = RL_REPLY_NIL};
        return true;
    }
    return read_integer(decoder);
}

bool rl_decoder_is_done(const struct rl_decoder *decoder)
{
    return decoder->ahead_len == 0 && is_at_rest(decoder);
}

int rl_decoder_next(struct rl_decoder *decoder)
{
    void *object = NULL;

    decoder->refused = false;
    if (decoder->ahead_len != 0 && read_plain(decoder))
        return 1;
    if (rl_decoder_is_done(decoder))
        return 0; /* asked now, the reader would believe to be in the middle of a reply */
    if (!feed_ahead(decoder))
        return -1;
    if (redisReaderGetReply(decoder->reader, &object) != REDIS_OK || decoder->refused)
        return -1;
    if (object == NULL)
        return 0;
    /* A newer reader marks RESP3 values, which we have no function for, with other pointers. */
    return object == &decoder->reply ? 1 : -1;
}
