/* SPDX-License-Identifier: MIT
 * Claims: key and token in one block, reference counts, and no token left in freed memory. */
#include "node/claim.h"

#include <stdlib.h>
#include <string.h>

#include "suite.h"

static unsigned frees; /* number of calls */
static size_t last_size;
static bool has_token; /* the last freed block contained the text of a token */
static bool is_broken; /* allocations fail */

/* Allocates, and remembers the size. */
static void *counted_malloc(size_t size, void *userdata)
{
    (void)userdata;
    last_size = size;
    return is_broken ? NULL : malloc(size);
}

/* Frees, and looks for the token in the block. */
static void counted_free(void *ptr, void *userdata)
{
    (void)userdata;
    frees++;
    has_token = memmem(ptr, last_size, "s3cret", 6) != NULL;
    free(ptr);
}

/* Returns the allocator of this test, with its records reset. */
static struct rl_mem test_allocator(void)
{
    frees = 0;
    is_broken = false;
    has_token = true;
    return (struct rl_mem){counted_malloc, NULL, counted_free, NULL};
}

#define TEXT(s) ((struct rl_arg){(s), sizeof(s) - 1})

START_TEST(key_and_token_may_have_any_bytes)
{
    struct rl_mem mem = test_allocator();
    static const char key[] = {'a', '\0', '\n', '\xff'};
    struct rl_claim *claim = rl_claim_new(&mem, (struct rl_arg){key, sizeof key}, 169);

    ck_assert_uint_eq(claim->refs, 1);
    ck_assert_int_eq(claim->undo_verb, RL_VERB_RELEASE);
    ck_assert_uint_eq(rl_claim_key(claim).len, sizeof key);
    ck_assert_mem_eq(rl_claim_key(claim).data, key, sizeof key);
    ck_assert_uint_eq(rl_claim_token(claim).len, 0);
    char longest[169];
    memset(longest, 't', sizeof longest);
    rl_claim_set_token(claim, (struct rl_arg){longest, sizeof longest});
    ck_assert_uint_eq(rl_claim_token(claim).len, sizeof longest);
    ck_assert_mem_eq(rl_claim_token(claim).data, longest, sizeof longest);
    ck_assert_mem_eq(rl_claim_key(claim).data, key, sizeof key);
    rl_claim_set_token(claim, TEXT("short")); /* renewed for the next attempt */
    ck_assert_uint_eq(rl_claim_token(claim).len, 5);
    ck_assert_mem_eq(rl_claim_token(claim).data, "short", 5);
    rl_claim_drop(claim);
    ck_assert_uint_eq(frees, 1);
}
END_TEST

START_TEST(the_last_reference_wipes_the_token)
{
    struct rl_mem mem = test_allocator();
    struct rl_claim *claim = rl_claim_new(&mem, TEXT("key"), 64);

    rl_claim_set_token(claim, TEXT("my s3cret"));
    ck_assert_ptr_eq(rl_claim_ref(claim), claim);
    rl_claim_ref(claim);
    rl_claim_drop(claim);
    rl_claim_drop(claim);
    ck_assert_uint_eq(frees, 0);
    ck_assert_mem_eq(rl_claim_token(claim).data, "my s3cret", 9);
    rl_claim_drop(claim);
    ck_assert_uint_eq(frees, 1);
    ck_assert(!has_token);
    rl_claim_drop(NULL);
}
END_TEST

START_TEST(several_keys_and_one_token)
{
    struct rl_mem mem = test_allocator();
    static char longest[RL_KEY_MAX];
    struct rl_arg keys[RL_KEYS_MAX], got[RL_KEYS_MAX];

    memset(longest, 'x', sizeof longest);
    for (unsigned count = 1; count <= RL_KEYS_MAX; count++) {
        for (unsigned i = 0; i < count; i++)
            keys[i] = (struct rl_arg){longest, i % 3 == 0 ? sizeof longest : i};
        struct rl_claim *claim = rl_claim_new_multi(&mem, keys, count, 64);
        rl_claim_set_token(claim, TEXT("my s3cret"));
        struct rl_claim *like = rl_claim_new_like(claim, 64);
        ck_assert_uint_eq(rl_claim_token(like).len, 0);
        rl_claim_set_token(like, TEXT("short"));
        ck_assert_uint_eq(rl_claim_key_count(like), count);
        for (unsigned both = 0; both < 2; both++) {
            ck_assert_uint_eq(rl_claim_keys(both == 0 ? claim : like, got), count);
            for (unsigned i = 0; i < count; i++) {
                ck_assert_uint_eq(got[i].len, keys[i].len);
                ck_assert_mem_eq(got[i].data, keys[i].data, keys[i].len);
            }
        }
        ck_assert_uint_eq(rl_claim_key(claim).len, sizeof longest);
        ck_assert_mem_eq(rl_claim_token(claim).data, "my s3cret", 9);
        ck_assert_mem_eq(rl_claim_token(like).data, "short", 5);
        rl_claim_drop(like);
        rl_claim_drop(claim);
        ck_assert(!has_token);
    }
}
END_TEST

START_TEST(without_memory_there_is_no_claim)
{
    struct rl_mem mem = test_allocator();

    is_broken = true;
    ck_assert_ptr_null(rl_claim_new(&mem, TEXT("key"), 64));
    ck_assert_ptr_null(rl_claim_new_multi(&mem, &TEXT("key"), 1, 64));
    ck_assert_uint_eq(frees, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_claim");
    TCase *tcase = tcase_create("claim");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, key_and_token_may_have_any_bytes);
    tcase_add_test(tcase, the_last_reference_wipes_the_token);
    tcase_add_test(tcase, several_keys_and_one_token);
    tcase_add_test(tcase, without_memory_there_is_no_claim);
    return suite_run(suite);
}
