/* SPDX-License-Identifier: MIT
 * The interface that all fuzz targets share. A target is one function of libFuzzer's interface;
 * replay.c calls the same function for each file of the corpus, in any build.
 *
 * An input is read byte by byte from its start. Past its end every byte is 0, so that each input is
 * valid. The first two bytes choose which allocation fails. */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs the target with one input. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The rest of an input. */
struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

/* Takes the next byte of the input; 0 past the end. */
static inline uint8_t fuzz_byte(struct fuzz_input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

/* Takes the next two bytes of the input as a number, the higher byte first. */
static inline unsigned fuzz_short(struct fuzz_input *input)
{
    unsigned high = fuzz_byte(input);
    return high << 8 | fuzz_byte(input);
}

/* Returns a number from 0 to limit - 1. */
static inline unsigned fuzz_below(struct fuzz_input *input, unsigned limit)
{
    return (limit > 256 ? fuzz_short(input) : fuzz_byte(input)) % limit;
}

/* Returns up to `max` bytes of the input, and their number in *ret_len. */
static inline const char *fuzz_bytes(struct fuzz_input *input, size_t max, size_t *ret_len)
{
    const char *bytes = (const char *)input->at;
    size_t len = max < input->left ? max : input->left;

    input->at += len;
    input->left -= len;
    *ret_len = len;
    return bytes;
}

/* Takes the two bytes that choose the failing allocation. 0: none. Otherwise number n - 1, counted
 * from here; if the highest bit is set, that one and all later ones. */
void fuzz_alloc_begin(struct fuzz_input *input);
/* Does the same as fuzz_alloc_begin() with two bytes that were taken before. */
void fuzz_alloc_choose(unsigned choice);
/* Ends the injection. Returns true if an allocation has failed. */
bool fuzz_alloc_end(void);
/* Exempts the test's own allocations: while `on`, they neither count nor fail. */
void fuzz_alloc_exempt(bool on);

/* Prints the failed condition and ends the run, as a crash for the fuzzer. */
_Noreturn void fuzz_wrong(const char *file, int line, const char *what);

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_wrong(__FILE__, __LINE__, #condition);                                            \
    } while (0)

#endif
