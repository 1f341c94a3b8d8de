/* SPDX-License-Identifier: MIT
 * Encoded commands, compared with what hiredis would write. */
#include "node/encode.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define WORDS_MAX 12

static struct rl_mem mem;
static struct rl_encoded encoded; /* the buffer that commands are written to */

/* Fixture: prepares an empty buffer. */
static void begin(void)
{
    mem = rl_mem_libc();
    encoded = (struct rl_encoded){.bytes = NULL};
}

/* Fixture: frees the buffer and checks that it is empty then. */
static void end(void)
{
    rl_encoded_free(&mem, &encoded);
    ck_assert_ptr_null(encoded.bytes);
    ck_assert_uint_eq(encoded.cap, 0);
}

/* Returns the text as a word of a command. */
static struct rl_arg word(const char *text)
{
    return (struct rl_arg){text, strlen(text)};
}

/* Checks that the bytes from `at` on are the command of these words. Returns its length. */
static size_t check_at(size_t at, size_t count, const struct rl_arg *words)
{
    const char *argv[WORDS_MAX];
    size_t lens[WORDS_MAX];
    char *bytes = NULL;

    for (size_t i = 0; i < count; i++) {
        argv[i] = words[i].len != 0 ? words[i].data : "";
        lens[i] = words[i].len;
    }
    const long long len = redisFormatCommandArgv(&bytes, (int)count, argv, lens);
    ck_assert_int_gt(len, 0);
    ck_assert_uint_ge(encoded.len, at + (size_t)len);
    ck_assert_mem_eq(encoded.bytes + at, bytes, (size_t)len);
    redisFreeCommand(bytes);
    return (size_t)len;
}

START_TEST(one_command_has_exact_bytes)
{
    const struct rl_arg words[] = {word("SET"), word("name"), word("token"),
                                   word("NX"),  word("PX"),   word("30000")};
    static const char expected[] = "*6\r\n$3\r\nSET\r\n$4\r\nname\r\n$5\r\ntoken\r\n"
                                   "$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n";

    ck_assert(rl_encode(&mem, &encoded, 6, words));
    ck_assert_uint_eq(encoded.len, sizeof expected - 1);
    ck_assert_mem_eq(encoded.bytes, expected, encoded.len);
}
END_TEST

/* Lengths around each power of ten and each growth of the buffer, with line ends in the bytes. */
START_TEST(words_of_any_length)
{
    char *bytes = malloc(70000);

    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < 70000; i++)
        bytes[i] = (char)(i % 251 == 0 ? '\r' : i % 241 == 0 ? '\n' : i);
    for (size_t len = 0; len < 70000; len += len < 1100 ? 1 : 997) {
        const struct rl_arg words[] = {word("ECHO"), {len != 0 ? bytes : NULL, len}, word("")};
        ck_assert(rl_encode(&mem, &encoded, 3, words));
        ck_assert_uint_eq(encoded.len, check_at(0, 3, words));
        ck_assert_uint_le(encoded.len, encoded.cap);
    }
    free(bytes);
}
END_TEST

START_TEST(commands_of_any_number_of_words)
{
    struct rl_arg words[WORDS_MAX];

    for (size_t count = 1; count <= WORDS_MAX; count++) {
        words[count - 1] = (struct rl_arg){"abcdefghijkl", count};
        ck_assert(rl_encode(&mem, &encoded, count, words));
        ck_assert_uint_eq(encoded.len, check_at(0, count, words));
    }
}
END_TEST

START_TEST(commands_are_appended)
{
    struct rl_arg words[] = {word("INFO"), {"server server server server server", 0}};
    size_t at = 0;

    for (unsigned i = 1; i < 34; i++) {
        words[1].len = i;
        ck_assert(rl_encode_append(&mem, &encoded, 2, words));
        at += check_at(at, 2, words);
        ck_assert_uint_eq(encoded.len, at);
    }
    ck_assert(rl_encode(&mem, &encoded, 2, words)); /* replaces them */
    ck_assert_uint_eq(encoded.len, check_at(0, 2, words));
}
END_TEST

START_TEST(the_buffer_is_reused)
{
    const struct rl_arg words[] = {word("GET"), word("name")};

    ck_assert(rl_encode(&mem, &encoded, 2, words));
    const char *bytes = encoded.bytes;
    for (unsigned i = 0; i < 100; i++)
        ck_assert(rl_encode(&mem, &encoded, 2, words));
    ck_assert_ptr_eq(encoded.bytes, bytes);
}
END_TEST

/* Fails, as an allocator without memory. */
static void *no_malloc(size_t size, void *userdata)
{
    (void)size;
    (void)userdata;
    return NULL;
}

START_TEST(without_memory_the_buffer_is_unchanged)
{
    char big[1000] = "";
    const struct rl_arg words[] = {word("GET"), word("name")}, long_word = {big, sizeof big};

    ck_assert(rl_encode(&mem, &encoded, 2, words));
    const size_t len = encoded.len;
    const struct rl_mem none = {no_malloc, mem.realloc_fn, mem.free_fn, NULL};
    ck_assert(!rl_encode(&none, &encoded, 1, &long_word));
    ck_assert(!rl_encode_append(&none, &encoded, 1, &long_word));
    ck_assert_uint_eq(encoded.len, len);
    check_at(0, 2, words);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_encode");
    TCase *tcase = tcase_create("encode");

    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, one_command_has_exact_bytes);
    tcase_add_test(tcase, words_of_any_length);
    tcase_add_test(tcase, commands_of_any_number_of_words);
    tcase_add_test(tcase, commands_are_appended);
    tcase_add_test(tcase, the_buffer_is_reused);
    tcase_add_test(tcase, without_memory_the_buffer_is_unchanged);
    return suite_run(suite);
}
