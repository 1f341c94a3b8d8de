/* SPDX-License-Identifier: MIT
 * What fuzz targets share. A target is one function of libFuzzer's interface; the same function is
 * called by replay.c for each file of the corpus, in any build.
 *
 * An input is read from its front, byte by byte; past its end everything is 0, so each input means
 * something. The first two bytes choose which allocation fails. */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The target. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

static inline uint8_t fuzz_byte(struct fuzz_input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

static inline unsigned fuzz_short(struct fuzz_input *input)
{
    unsigned high = fuzz_byte(input);
    return high << 8 | fuzz_byte(input);
}

/* A number from 0 to limit - 1. */
static inline unsigned fuzz_below(struct fuzz_input *input, unsigned limit)
{
    return (limit > 256 ? fuzz_short(input) : fuzz_byte(input)) % limit;
}

/* Up to `max` bytes of the input; *ret_len of them are there. */
static inline const char *fuzz_bytes(struct fuzz_input *input, size_t max, size_t *ret_len)
{
    const char *bytes = (const char *)input->at;
    size_t len = max < input->left ? max : input->left;

    input->at += len;
    input->left -= len;
    *ret_len = len;
    return bytes;
}

/* Takes the two bytes that choose the failing allocation: 0 none, else number n - 1 counted from
 * here; with the highest bit, that one and all later ones. */
void fuzz_alloc_begin(struct fuzz_input *input);
/* The same with two bytes that were taken before. */
void fuzz_alloc_choose(unsigned choice);
/* Memory is back. True if an allocation has failed. */
bool fuzz_alloc_end(void);
/* The allocations of the test itself neither count nor fail while on. */
void fuzz_alloc_exempt(bool on);

_Noreturn void fuzz_wrong(const char *file, int line, const char *what);

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_wrong(__FILE__, __LINE__, #condition);                                            \
    } while (0)

#endif
