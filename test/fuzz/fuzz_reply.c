/* SPDX-License-Identifier: MIT
 * Fuzzes the bytes of a server. The decoder reads them whole and in pieces and must find the same
 * replies. A small strict parser must agree with it. Each reply is classified as that of every
 * request, and only the one right reply is a vote.
 *
 *     2 bytes failing allocation, 1 byte lengths of texts, 1 byte number of pieces, their
 *     lengths, then the stream */
#include "fuzz.h"

#include "core/protocol.h"
#include "judge_fence.h"
#include "node/codec.h"

#include <redlock/redlock.h>
#include <string.h>

#define PIECES_MAX  32
#define STREAM_MAX  ((size_t)160 * 1024)
#define REPLIES_MAX 4096
#define JUDGED_MAX  64
#define READ_MAX    ((size_t)16 * 1024) /* as much as the library reads from a socket at once */

struct found {
    int64_t integer;
    uint64_t hash; /* of the text */
    size_t len;
    enum rl_reply_kind kind;
};

struct result {
    struct found list[REPLIES_MAX];
    unsigned count;
    bool broken; /* the connection would be closed */
};

static struct rl_reply_text text;
static struct result whole, pieces;

/* Returns a hash of the bytes. */
static uint64_t hash(const char *bytes, size_t len)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < len; i++)
        sum = (sum ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* Returns the maximum length of the text of reply `number`. */
static size_t bulk_max(unsigned lengths, unsigned number)
{
    return (lengths >> (number % 8) & 1) != 0 ? RL_INFO_MAX : RL_BULK_MAX;
}

/* Returns true if replies of this kind have a text. */
static bool is_text(enum rl_reply_kind kind)
{
    return kind == RL_REPLY_STATUS || kind == RL_REPLY_ERROR || kind == RL_REPLY_BULK;
}

/* ---- every reply as the reply to every request ---- */

/* Returns true if the reply is of this kind and has exactly this text. */
static bool is_exactly(const struct rl_reply *reply, enum rl_reply_kind kind, const char *word)
{
    return reply->kind == kind && reply->len == strlen(word) &&
           memcmp(reply->text, word, reply->len) == 0;
}

/* Returns true if the reply may be a grant of the request. */
static bool may_grant(enum rl_verb verb, const struct rl_reply *reply)
{
    switch (verb) {
    case RL_VERB_ACQUIRE:
    case RL_VERB_HEAL:
        return is_exactly(reply, RL_REPLY_STATUS, "OK");
    case RL_VERB_EXTEND:
    case RL_VERB_RELEASE:
    case RL_VERB_SHORTEN:
        return reply->kind == RL_REPLY_INTEGER && reply->integer == 1;
    case RL_VERB_GET:
        return reply->kind == RL_REPLY_BULK ||
               (reply->kind == RL_REPLY_ERROR && reply->len >= 9 &&
                memmem(reply->text, reply->len, "WRONGTYPE", 9) != NULL);
    case RL_VERB_PTTL:
        return reply->kind == RL_REPLY_INTEGER && reply->integer >= -1;
    default:
        return true; /* PING: any reply shows that the server is alive */
    }
}

/* Judges requests on several keys: the reply is 1 where one covers all keys, and their number where
 * they are counted. */
static void judge_many(const struct rl_reply *reply)
{
    static const enum rl_verb verbs[] = {RL_VERB_ACQUIRE, RL_VERB_HEAL,    RL_VERB_EXTEND,
                                         RL_VERB_RELEASE, RL_VERB_SHORTEN, RL_VERB_GET};
    static const unsigned counts[] = {2, 3, RL_KEYS_MAX};

    for (size_t i = 0; i < 3 * sizeof verbs / sizeof verbs[0]; i++) {
        enum rl_verb verb = verbs[i / 3];
        unsigned count = counts[i % 3];
        bool counted = verb == RL_VERB_RELEASE || verb == RL_VERB_SHORTEN;
        struct rl_result result = rl_protocol_classify(verb, RL_FORM_MANY, count, reply);
        if (result.vote == RL_VOTE_GRANTED)
            MUST(reply->kind == RL_REPLY_INTEGER && reply->integer == (counted ? count : 1));
        MUST(result.vote != RL_VOTE_NONE && result.vote != RL_VOTE_RESEND);
        MUST((result.vote == RL_VOTE_FAILED) == (result.cause != REDLOCK_CAUSE_NONE));
        MUST(result.key <= count);
        MUST((result.key != 0) == (result.vote == RL_VOTE_DENIED && verb == RL_VERB_ACQUIRE &&
                                   reply->kind == RL_REPLY_INTEGER));
    }
}

/* Classifies the reply as that of each request and checks the results. */
static void judge(const struct rl_reply *reply)
{
    static const struct {
        enum rl_verb verb;
        enum rl_form form;
    } table[] = {
        {RL_VERB_ACQUIRE, RL_FORM_PLAIN},   {RL_VERB_HEAL, RL_FORM_PLAIN},
        {RL_VERB_EXTEND, RL_FORM_SHA},      {RL_VERB_EXTEND, RL_FORM_EVAL},
        {RL_VERB_RELEASE, RL_FORM_SHA},     {RL_VERB_RELEASE, RL_FORM_EVAL},
        {RL_VERB_RELEASE, RL_FORM_DELEX},   {RL_VERB_SHORTEN, RL_FORM_SHA},
        {RL_VERB_RELEASE, RL_FORM_DELIFEQ}, {RL_VERB_GET, RL_FORM_PLAIN},
        {RL_VERB_PTTL, RL_FORM_PLAIN},      {RL_VERB_PING, RL_FORM_PLAIN},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct rl_result result = rl_protocol_classify(table[i].verb, table[i].form, 1, reply);
        if (result.vote == RL_VOTE_GRANTED)
            MUST(may_grant(table[i].verb, reply));
        MUST(result.vote != RL_VOTE_NONE);
        MUST((result.vote == RL_VOTE_FAILED) == (result.cause != REDLOCK_CAUSE_NONE));
        if (result.vote == RL_VOTE_RESEND)
            MUST(reply->kind == RL_REPLY_ERROR && result.form != table[i].form);
    }
    judge_fence(reply);
    judge_many(reply);
    if (reply->kind == RL_REPLY_ERROR)
        MUST(rl_wire_error_cause(reply->text, reply->len) != REDLOCK_CAUSE_NONE);
}

/* ---- the decoder ---- */

/* Decodes what has arrived. The first pass judges the replies; those of the second must be equal.
 * Returns false if the connection would be closed. */
static bool drain(struct rl_decoder *decoder, struct result *result, unsigned lengths)
{
    while (result->count < REPLIES_MAX) {
        size_t most = bulk_max(lengths, result->count);
        decoder->bulk_max = most;
        int got = rl_decoder_next(decoder);
        if (got <= 0)
            return got == 0;
        const struct rl_reply *reply = &decoder->reply;
        struct found *found = &result->list[result->count++];
        *found = (struct found){.kind = reply->kind};
        if (reply->kind == RL_REPLY_INTEGER)
            found->integer = reply->integer;
        if (is_text(reply->kind)) {
            MUST(reply->len <= most && reply->text[reply->len] == '\0');
            found->len = reply->len;
            found->hash = hash(reply->text, reply->len);
        }
        if (result == &whole && result->count <= JUDGED_MAX)
            judge(reply);
    }
    return true;
}

/* Decodes the stream in pieces of these lengths; `count` 0: in large ones. */
static void decode(struct result *result, const char *stream, size_t len, const uint8_t *lens,
                   unsigned count, unsigned lengths)
{
    struct rl_decoder decoder;

    result->count = 0;
    result->broken = !rl_decoder_open(&decoder, &text);
    if (result->broken)
        return;
    for (unsigned i = 0; len > 0 && !result->broken; i++) {
        size_t piece = count > 0 ? (size_t)lens[i % count] + 1 : READ_MAX;
        piece = piece < len ? piece : len;
        result->broken = !rl_decoder_feed(&decoder, stream, piece);
        if (!result->broken)
            result->broken = !drain(&decoder, result, lengths);
        stream += piece;
        len -= piece;
    }
    rl_decoder_close(&decoder);
    MUST(decoder.reader == NULL);
}

/* ---- a strict parser: what it accepts, the decoder must accept ---- */

enum verdict { REPLY, MORE, REFUSED, LOOSE };

/* Reads -?(0|[1-9][0-9]*) in the range of int64_t. */
static bool strict_integer(const char *at, size_t len, int64_t *ret)
{
    bool negative = len > 0 && *at == '-';
    uint64_t value = 0;

    if (negative) {
        at++;
        len--;
    }
    if (len == 0 || len > 19 || (*at == '0' && (len > 1 || negative)))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(at[i] - '0');
    }
    if (value > (uint64_t)INT64_MAX + negative)
        return false;
    *ret = negative ? (int64_t)-value : (int64_t)value;
    return true;
}

/* Parses the body of a bulk string. */
static enum verdict strict_bulk(const char *body, size_t left, int64_t len, size_t most,
                                struct found *ret, size_t *ret_used)
{
    if (len == -1) {
        *ret = (struct found){.kind = RL_REPLY_NIL};
        return REPLY;
    }
    if (len < 0)
        return REFUSED;
    size_t size = (size_t)len;
    if (size > most && left < size) /* may be refused now or when it is complete */
        return LOOSE;
    if (left < size + 2)
        return size > most ? LOOSE : MORE;
    if (size > most)
        return REFUSED;
    if (body[size] != '\r' || body[size + 1] != '\n')
        return LOOSE;
    *ret = (struct found){.kind = RL_REPLY_BULK, .len = size, .hash = hash(body, size)};
    *ret_used += size + 2;
    return REPLY;
}

/* Parses the next reply. */
static enum verdict strict_next(const char *at, size_t left, size_t most, struct found *ret,
                                size_t *ret_used)
{
    int64_t number;

    if (left == 0)
        return MORE;
    if (strchr("+-:$*", *at) == NULL || *at == '\0')
        return REFUSED;
    const char *end = memmem(at, left, "\r\n", 2);
    if (end == NULL)
        return *at == '*' ? LOOSE : MORE;
    size_t len = (size_t)(end - at) - 1;
    *ret_used = len + 3;
    switch (*at) {
    case '+':
    case '-':
        len = len < most ? len : most; /* shortened */
        *ret = (struct found){.kind = *at == '+' ? RL_REPLY_STATUS : RL_REPLY_ERROR,
                              .len = len,
                              .hash = hash(at + 1, len)};
        return REPLY;
    case ':':
        if (!strict_integer(at + 1, len, &number))
            return LOOSE;
        *ret = (struct found){.kind = RL_REPLY_INTEGER, .integer = number};
        return REPLY;
    case '$':
        if (!strict_integer(at + 1, len, &number))
            return LOOSE;
        return strict_bulk(end + 2, left - *ret_used, number, most, ret, ret_used);
    default:
        return REFUSED; /* arrays: no request has one as its reply */
    }
}

/* Compares the decoder's result with that of the strict parser. */
static void compare_strictly(const struct result *result, const char *stream, size_t len,
                             unsigned lengths)
{
    for (unsigned i = 0; i < REPLIES_MAX; i++) {
        struct found found;
        size_t used = 0;
        enum verdict verdict = strict_next(stream, len, bulk_max(lengths, i), &found, &used);
        if (verdict == LOOSE)
            return;
        if (verdict != REPLY) {
            MUST(result->count == i && result->broken == (verdict == REFUSED));
            return;
        }
        MUST(i < result->count);
        const struct found *other = &result->list[i];
        MUST(found.kind == other->kind && found.integer == other->integer);
        MUST(found.len == other->len && found.hash == other->hash);
        stream += used;
        len -= used;
    }
}

/* Returns true if both replies are equal. */
static bool same(const struct found *a, const struct found *b)
{
    return a->kind == b->kind && a->integer == b->integer && a->len == b->len && a->hash == b->hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t lens[PIECES_MAX];
    size_t len;

    fuzz_alloc_begin(&input);
    unsigned lengths = fuzz_byte(&input);
    unsigned count = fuzz_byte(&input) % PIECES_MAX + 1;
    for (unsigned i = 0; i < count && i < PIECES_MAX; i++)
        lens[i] = fuzz_byte(&input);
    const char *stream = fuzz_bytes(&input, STREAM_MAX, &len);
    decode(&whole, stream, len, NULL, 0, lengths);
    decode(&pieces, stream, len, lens, count, lengths);
    if (fuzz_alloc_end())
        return 0;
    MUST(whole.count == pieces.count && whole.broken == pieces.broken);
    for (unsigned i = 0; i < whole.count; i++)
        MUST(same(&whole.list[i], &pieces.list[i]));
    compare_strictly(&whole, stream, len, lengths);
    return 0;
}
