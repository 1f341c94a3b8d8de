/* SPDX-License-Identifier: MIT
 * Memory runs out while commands are encoded, and inside hiredis: in its reader before, during and
 * after a long run of replies. Needs no servers. */
#include "node/codec.h"
#include "node/encode.h"

#include <stdlib.h>
#include <string.h>

#include "alloc_fail.h"
#include "rig.h"

/* hiredis drops what was read whenever it is 1 KiB or more, which is 205 replies here. Then nothing
 * is left, and it frees its buffer. */
#define REPLIES (205 * 25)
#define REPLY   "+no\r\n" /* "+OK" would not go through hiredis */

static struct rl_reply_text text;               /* room for the text of a reply */
static bool says_why;                           /* a failed decoder reports the lack of memory */
static char many[REPLIES * (sizeof REPLY - 1)]; /* REPLIES times REPLY */

/* Feeds bytes and takes all replies, whose number is added to `ret_taken`. Returns false if the
 * decoder failed. */
static bool decode(struct rl_decoder *decoder, const char *bytes, size_t len, unsigned *ret_taken)
{
    int got;

    if (!rl_decoder_feed(decoder, bytes, len)) {
        says_why = rl_decoder_lacks_memory(decoder);
        return false;
    }
    while ((got = rl_decoder_next(decoder)) == 1)
        (*ret_taken)++;
    return got == 0;
}

/* Decodes long and short runs by turns: the buffer grows and shrinks again. Returns the number of
 * replies before a failure, or of all. */
static unsigned decode_runs(void)
{
    struct rl_decoder decoder;
    unsigned taken = 0;

    if (!rl_decoder_open(&decoder, &text))
        return 0;
    bool alive = true;
    for (int i = 0; i < 3 && alive; i++)
        alive = decode(&decoder, many, sizeof many, &taken) && decode(&decoder, "+O", 2, &taken) &&
                decode(&decoder, "K\r\n", 3, &taken);
    rl_decoder_close(&decoder);
    return taken;
}

/* Decodes all replies once for each allocation, which fails; with `starve` all later ones fail,
 * too. Checks that no block stays and no reply is taken twice. */
static void sweep_decoder(bool starve)
{
    bool hit = true;

    for (uint64_t k = 0; hit; k++) {
        const int64_t live = alloc_fail_live();
        rig_note("decoder", starve, k);
        if (starve)
            alloc_fail_from(k, ALLOC_FAIL_ALL_THREADS);
        else
            alloc_fail_once(k, ALLOC_FAIL_ALL_THREADS);
        says_why = true;
        const unsigned taken = decode_runs();
        hit = alloc_fail_stop();
        ck_assert_int_eq(alloc_fail_live(), live);
        ck_assert(says_why);
        ck_assert_uint_le(taken, 3 * (REPLIES + 1));
        ck_assert_msg(hit || (k > 4 && taken == 3 * (REPLIES + 1)), "%u replies, %u allocations",
                      taken, (unsigned)k);
        rig_end_note();
    }
}

START_TEST(decoder)
{
    for (size_t i = 0; i < REPLIES; i++)
        memcpy(many + i * (sizeof REPLY - 1), REPLY, sizeof REPLY - 1);
    sweep_decoder(false);
    sweep_decoder(true);
}
END_TEST

START_TEST(commands)
{
    const struct rl_arg args[] = {{"SET", 3}, {"key", 3}, {"token", 5}};
    const struct rl_mem mem = rl_mem_libc();
    struct rl_encoded encoded = {.bytes = NULL};
    bool hit = true;

    for (uint64_t k = 0; hit; k++) {
        const int64_t live = alloc_fail_live();
        alloc_fail_once(k, ALLOC_FAIL_ALL_THREADS);
        const bool done = rl_encode(&mem, &encoded, 3, args);
        hit = alloc_fail_stop();
        ck_assert_int_eq(done, !hit);
        rl_encoded_free(&mem, &encoded);
        ck_assert_int_eq(alloc_fail_live(), live);
        ck_assert(hit || k > 0);
    }
}
END_TEST

static Suite *codec_suite(void)
{
    Suite *suite = suite_create("oom_codec");
    TCase *tcase = tcase_create("codec");
    tcase_add_checked_fixture(tcase, NULL, rig_after);
    tcase_add_test(tcase, decoder);
    tcase_add_test(tcase, commands);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run_nofork(codec_suite());
}
