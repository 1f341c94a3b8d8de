/* SPDX-License-Identifier: MIT
 * Parses the bytes of a connection into replies, with the reader of hiredis. Only codec.c and
 * codec_check.c use hiredis, and nothing of it but the reader
 * (docs/internals/decisions/0008-hiredis-as-parser.md). */
#ifndef RL_NODE_CODEC_H
#define RL_NODE_CODEC_H

#include "core/wire.h"

/* Limits in bytes. A status or an error is shortened to them, because only its beginning is needed;
 * a longer bulk string is refused. */
#define RL_BULK_MAX     1024                      /* text of a reply to any command but INFO */
#define RL_INFO_MAX     (64 * 1024)               /* text of a long reply, such as that to INFO */
#define RL_JOINED_MAX   96                        /* all elements of an array, joined by blanks */
#define RL_UNPARSED_MAX (RL_INFO_MAX + 64 * 1024) /* received bytes without a complete reply */

/* Returns the libraries that this build was compiled against, as "hiredis 0.14.1, libsodium
 * 1.0.18, openssl 3.0.17". A constant. */
const char *rl_codec_libraries(void);

/* Checks that the hiredis which this process has bound reads replies as the one that the library
 * was compiled against. Returns 0, REDLOCK_ENOMEM, REDLOCK_ESYS (no descriptor for the check), or
 * REDLOCK_ELIBRARY if the bound hiredis reads otherwise, or if its functions come from several
 * files. With REDLOCK_ELIBRARY, `text` names the files and the remedy; else `text` is "". `size` >
 * 0 is the size of `text` in bytes. */
int rl_codec_check(char *text, size_t size);

/* The elements of one array reply, nested arrays flattened: what a server sends on the second
 * connection, such as a notification. Only codec.c changes it, while rl_decoder_next() reads the
 * reply. */
#define RL_TEXTS_MAX       8                  /* most elements of such an array */
#define RL_TEXTS_BYTES_MAX (RL_KEY_MAX + 128) /* bytes: a key and other words */
struct rl_texts {
    unsigned count;                   /* elements read until now; 0 to RL_TEXTS_MAX */
    struct rl_arg list[RL_TEXTS_MAX]; /* the elements; they point into `bytes`. `data` NULL: the
                                       * element is nil or an integer */
    size_t used;                      /* used bytes of `bytes` */
    char bytes[RL_TEXTS_BYTES_MAX];   /* all texts, one after the other, not terminated */
};

/* Room for the text of one reply. All nodes of a client share one: each reply is handled before the
 * next one is read. */
struct rl_reply_text {
    char bytes[RL_INFO_MAX + 1]; /* the text, terminated */
};

/* The parser of one connection. All zero: closed. Only codec.c changes it, except for the three
 * fields that are marked; the owner of the connection sets those before each reply.
 *
 * Invariant: if `ahead_len` is not 0, the reader is between two replies, so that the bytes at
 * `ahead` begin with a new reply. */
struct rl_decoder {
    void *reader;               /* redisReader; NULL: closed */
    const char *ahead;          /* received bytes that the reader was not given yet; borrowed */
    size_t ahead_len;           /* bytes at `ahead` */
    struct rl_reply_text *text; /* where the text of a reply is copied to; borrowed */
    struct rl_reply reply;      /* the reply that is being read, or was read last */
    size_t len_max;             /* most bytes that the reader has buffered since it was
                                 * created */
    size_t bulk_max;        /* set by the owner: longest text of the next reply in bytes, at most
                             * RL_INFO_MAX; RL_BULK_MAX at first */
    unsigned elements_max;  /* set by the owner: most elements of an array in the next reply; 0:
                             * arrays are refused */
    struct rl_texts *texts; /* set by the owner: where the elements of arrays, nested once
                             * or not, are stored. NULL: only arrays of bulk strings are allowed;
                             * their elements are stored in `joined` */
    bool refused;           /* the reply that was read last was beyond a limit, or of a kind that no
                             * request has */
    /* Elements of an array, joined by blanks. Not in `text`, which is shared: another node's reply
     * may be read before the rest of this array arrives. */
    char joined[RL_JOINED_MAX];
};

/* Opens the decoder, which borrows `text` until rl_decoder_close(). Returns false if there is no
 * memory; then the decoder is unchanged. */
bool rl_decoder_open(struct rl_decoder *decoder, struct rl_reply_text *text);
/* Closes the decoder and frees its reader. Does nothing if the decoder is closed already. */
void rl_decoder_close(struct rl_decoder *decoder);

/* Hands `len` received bytes to the decoder, which borrows them until rl_decoder_next() returns 0
 * or -1. Returns false if there is no memory, or if more than RL_UNPARSED_MAX bytes hold no
 * complete reply; then the connection must be closed. */
bool rl_decoder_feed(struct rl_decoder *decoder, const char *bytes, size_t len);

/* Returns true if rl_decoder_feed() or rl_decoder_next() has failed for lack of memory. Called only
 * after a failure. */
bool rl_decoder_lacks_memory(const struct rl_decoder *decoder);

/* Returns true if the reader is between two replies, without an error and without unread bytes. */
bool rl_decoder_is_at_rest(const struct rl_decoder *decoder);
/* Returns true if all received bytes were read as replies, so that rl_decoder_next() would return
 * 0. */
static inline bool rl_decoder_is_done(const struct rl_decoder *decoder)
{
    return decoder->ahead_len == 0 && rl_decoder_is_at_rest(decoder);
}

/* Reads the next reply. Returns 1 if `decoder->reply` is that reply, which is valid until the next
 * call for any decoder with the same `text`; 0 if more bytes are needed; -1 if the bytes violate
 * the protocol, the reply is beyond a limit, or there is no memory. */
int rl_decoder_next(struct rl_decoder *decoder);
/* Reads the next reply if it is OK, nil or an integer, as nearly all votes are; the limits that
 * rl_decoder_expect() sets do not concern such a reply. Returns 1 as rl_decoder_next() does, or 0
 * if the next reply is another one or not complete; rl_decoder_next() must be called then. */
int rl_decoder_next_plain(struct rl_decoder *decoder);

/* Returns true between rl_decoder_open() and rl_decoder_close(). */
static inline bool rl_decoder_is_open(const struct rl_decoder *decoder)
{
    return decoder->reader != NULL;
}

/* Returns the reply for which rl_decoder_next() has returned 1. It is valid until the next call of
 * rl_decoder_next(). */
static inline const struct rl_reply *rl_decoder_reply(const struct rl_decoder *decoder)
{
    return &decoder->reply;
}

/* Sets the limits of the next reply: `bulk_max` bytes of a text, and `elements_max` elements of an
 * array (0: an array is refused). */
static inline void rl_decoder_expect(struct rl_decoder *decoder, size_t bulk_max,
                                     unsigned elements_max)
{
    decoder->bulk_max = bulk_max;
    decoder->elements_max = elements_max;
}

/* Has the elements of all further arrays stored in `texts` (borrowed). Arrays in an
 * array are then allowed, and RL_TEXTS_MAX replaces the limit `elements_max`. */
static inline void rl_decoder_collect(struct rl_decoder *decoder, struct rl_texts *texts)
{
    decoder->texts = texts;
}

#endif
