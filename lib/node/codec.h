/* SPDX-License-Identifier: MIT
 * Replies, read by hiredis. The only file that knows it, and only its reader: sockets, timers and
 * buffers are ours (docs/internals/decisions/0008-hiredis-as-parser.md). */
#ifndef RL_NODE_CODEC_H
#define RL_NODE_CODEC_H

#include "core/wire.h"

#define RL_BULK_MAX     1024        /* longest reply text of an ordinary command */
#define RL_INFO_MAX     (64 * 1024) /* longest INFO */
#define RL_JOINED_MAX   96          /* all elements of an array */
#define RL_UNPARSED_MAX (RL_INFO_MAX + 64 * 1024)

/* The libraries of this build: "hiredis 0.14.1, libsodium 1.0.18". */
const char *rl_codec_libraries(void);

/* Checks that the hiredis that this process has bound reads replies as the one that the library was
 * compiled against. ELIBRARY: it does not, or its functions come from several files; `text` names
 * the files and the remedy. ENOMEM; ESYS: no descriptor. */
int rl_codec_check(char *text, size_t size);

/* An array of texts, nested or not, one after the other: what a subscribed connection hears. */
#define RL_TEXTS_MAX       8
#define RL_TEXTS_BYTES_MAX (RL_KEY_MAX + 128)
struct rl_texts {
    unsigned count;
    struct rl_arg list[RL_TEXTS_MAX]; /* data NULL: nil */
    size_t used;
    char bytes[RL_TEXTS_BYTES_MAX];
};

/* Room for the text of one reply. Shared by all nodes of a client: a reply is looked at before the
 * next one is read. */
struct rl_reply_text {
    char bytes[RL_INFO_MAX + 1];
};

struct rl_decoder {
    void *reader;
    const char *ahead; /* bytes that the reader was not given yet */
    size_t ahead_len;
    struct rl_reply_text *text;
    struct rl_reply reply;
    size_t len_max;  /* most bytes that were in the reader */
    size_t bulk_max; /* of the reply that is read next; set by the caller, RL_BULK_MAX at first */
    unsigned elements_max;  /* the same; 0: no array is expected */
    struct rl_texts *texts; /* arrays of any depth go there; NULL: they are refused */
    bool refused;           /* the reply was too long, or of a kind we never ask for */
    /* Texts of an array. Not in the shared text: another node's reply may be read before the rest
     * of this one has come. */
    char joined[RL_JOINED_MAX];
};

/* false: no memory. */
bool rl_decoder_open(struct rl_decoder *decoder, struct rl_reply_text *text);
void rl_decoder_close(struct rl_decoder *decoder);

/* Takes bytes from the wire; they must stay there until rl_decoder_next() has said 0 or -1. false:
 * no memory, or more than RL_UNPARSED_MAX bytes without a complete reply: the connection is of no
 * use any more. */
bool rl_decoder_feed(struct rl_decoder *decoder, const char *bytes, size_t len);

/* After a failure: it was for want of memory. */
bool rl_decoder_lacks_memory(const struct rl_decoder *decoder);

/* All that was taken has been read: rl_decoder_next() would say 0. */
bool rl_decoder_is_done(const struct rl_decoder *decoder);

/* 1: decoder->reply is the next reply, good until the next call; 0: more bytes are needed; -1: not
 * the protocol, a reply beyond the limits, or no memory. */
int rl_decoder_next(struct rl_decoder *decoder);

/* Returns true between rl_decoder_open() and rl_decoder_close(). */
static inline bool rl_decoder_is_open(const struct rl_decoder *decoder)
{
    return decoder->reader != NULL;
}

/* Returns the reply for which rl_decoder_next() has returned 1; valid until its next call. */
static inline const struct rl_reply *rl_decoder_reply(const struct rl_decoder *decoder)
{
    return &decoder->reply;
}

/* Sets the limits of the next reply: the bytes of a text, and the elements of an array (0: an array
 * is refused). */
static inline void rl_decoder_expect(struct rl_decoder *decoder, size_t bulk_max,
                                     unsigned elements_max)
{
    decoder->bulk_max = bulk_max;
    decoder->elements_max = elements_max;
}

/* Collects the texts of arrays in `texts` (borrowed), whatever their depth and the limit of their
 * elements. */
static inline void rl_decoder_collect(struct rl_decoder *decoder, struct rl_texts *texts)
{
    decoder->texts = texts;
}

#endif
