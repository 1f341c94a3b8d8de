/* SPDX-License-Identifier: MIT
 * Keys of the slots of a semaphore: each number has a key, from which the number is read again. */
#include "engine/slot.h"

#include <string.h>

#include "suite.h"

/* Each slot's key is read back as the name of the semaphore and the number of the slot. */
START_TEST(keys_are_read_back)
{
    const struct rl_arg name = {"build", 5};
    char bytes[RL_SLOT_KEY_MAX];
    struct rl_arg found;
    uint16_t slot;

    for (unsigned i = 0; i < RL_PERMITS_MAX; i++) {
        ck_assert(rl_slot_of(rl_slot_key(bytes, name, i), &found, &slot));
        ck_assert_uint_eq(slot, i);
        ck_assert_uint_eq(found.len, name.len);
        ck_assert_mem_eq(found.data, name.data, name.len);
    }
}
END_TEST

/* A key that rl_slot_key() never writes is that of an ordinary lock; 1024 is one slot too many. */
START_TEST(other_keys_have_no_slot)
{
    static const char *const KEYS[] = {"build",        "{#0}",     "build{#}",      "build{#1024}",
                                       "build{#1025}", "build{0}", "build#0}",      "build{#0} ",
                                       "build{#-1}",   "",         "build{#999999}"};
    struct rl_arg found;
    uint16_t slot;

    ck_assert(!rl_slot_of((struct rl_arg){KEYS[_i], strlen(KEYS[_i])}, &found, &slot));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_slot_keys");
    TCase *tcase = tcase_create("slot_keys");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, keys_are_read_back);
    tcase_add_loop_test(tcase, other_keys_have_no_slot, 0, 11);
    return suite_run(suite);
}
