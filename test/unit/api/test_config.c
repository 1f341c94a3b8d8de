/* SPDX-License-Identifier: MIT
 * The configuration: defaults, the bounds of every setter, and that a refused call changes nothing
 * but the text that says why.
 *
 * Uses failing_allocator.h: an allocator that fails after heap.left calls, counts its live blocks,
 * and notices freed blocks that begin with a Q, as every password in these tests does. */
#include "api/config.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "failing_allocator.h"
#include "suite.h"

static struct redlock_config *config;

/* Fixture: creates a configuration with the defaults. */
static void setup(void)
{
    ck_assert_int_eq(redlock_config_new(&config, NULL), 0);
}

/* Fixture: frees the configuration. */
static void teardown(void)
{
    redlock_config_free(config);
}

/* Checks that the last error contains this text. */
static void expect_error(const char *part)
{
    ck_assert_msg(strstr(redlock_config_error(config), part) != NULL, "\"%s\" is not in \"%s\"",
                  part, redlock_config_error(config));
}

START_TEST(a_new_configuration_has_the_defaults)
{
    ck_assert_uint_eq(config->node_count, 0);
    ck_assert_ptr_null(config->user);
    ck_assert_ptr_null(config->password);
    ck_assert_int_eq(config->mode, REDLOCK_MODE_THREADED);
    ck_assert_str_eq(config->prefix, "");
    ck_assert_str_eq(config->owner, "");
    ck_assert_uint_eq(config->max_ttl_ms, 30000);
    ck_assert_uint_eq(config->connect_timeout_ms, 250);
    ck_assert_uint_eq(config->node_timeout_ms, 0);
    ck_assert_uint_eq(config->retry_ms_min, 10);
    ck_assert_uint_eq(config->retry_ms_max, 200);
    ck_assert_uint_eq(config->drift.ppm, 10000);
    ck_assert_uint_eq(config->drift.constant_us, 2000);
    ck_assert(config->log.fn == NULL);
    ck_assert(config->event_fn == NULL);
    ck_assert_str_eq(redlock_config_error(config), "");
}
END_TEST

/* Subtracts the drift, its constant part and the loss margin from the TTL, and rounds down. */
START_TEST(the_validity_excludes_drift_and_margin)
{
    static const struct {
        uint32_t ppm, floor_us;
        uint64_t ttl_ms, validity_ms;
    } rows[] = {
        {10000, 2000, 30000, 29668}, /* 300, 2 and 30 ms */
        {10000, 2000, 100, 92},      /* 1, 2 and 5 ms */
        {0, 0, 5, 0},
        {0, 1, 1000, 994}, /* 994.999 ms */
        {500000, 0, 10, 0},
        {0, 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_int_eq(redlock_config_set_drift(config, rows[i].ppm, rows[i].floor_us), 0);
        ck_assert_uint_eq(redlock_config_validity_ms(config, rows[i].ttl_ms), rows[i].validity_ms);
    }
    ck_assert_uint_gt(redlock_config_validity_ms(config, UINT64_MAX), REDLOCK_TTL_MS_MAX);
    ck_assert_uint_eq(redlock_config_validity_ms(NULL, 1000), 0);
}
END_TEST

/* Does nothing: a log function to set and to compare. */
static void ignore_log(int level, const char *message, void *userdata)
{
    (void)level, (void)message, (void)userdata;
}

/* Does nothing: an event function to set and to compare. */
static void ignore_event(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    (void)rl, (void)event, (void)userdata;
}

START_TEST(null_is_refused_everywhere)
{
    ck_assert_int_eq(redlock_config_new(NULL, NULL), REDLOCK_EINVAL);
    redlock_config_free(NULL);
    ck_assert_str_eq(redlock_config_error(NULL), "no configuration given");
    ck_assert_int_eq(redlock_config_add_nodes(NULL, "h"), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_set_auth(NULL, "u", "p"), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_set_mode(NULL, 1), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_set_key_prefix(NULL, ""), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_set_owner(NULL, ""), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_set_max_ttl_ms(NULL, 1000), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_set_connect_timeout_ms(NULL, 100), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_set_node_timeout_ms(NULL, 100), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_set_keepalive_ms(NULL, 0), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_set_retry_ms(NULL, 1, 2), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_set_drift(NULL, 0, 0), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_set_log(NULL, 1, ignore_log, NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_set_event(NULL, ignore_event, NULL), REDLOCK_EINVAL);
}
END_TEST

/* ---- numbers ---- */

/* Sets the lower bound of the delay between attempts; the upper one is the largest allowed. */
static int set_retry_min(redlock_config_t *c, uint64_t value)
{
    return redlock_config_set_retry_ms(c, (uint32_t)value, 60000);
}

/* Sets the upper bound of the delay between attempts; the lower one is the smallest allowed. */
static int set_retry_max(redlock_config_t *c, uint64_t value)
{
    return redlock_config_set_retry_ms(c, 50, (uint32_t)value);
}

/* Sets the connect timeout in ms. */
static int set_connect(redlock_config_t *c, uint64_t value)
{
    return redlock_config_set_connect_timeout_ms(c, (uint32_t)value);
}

/* Sets the node timeout in ms. */
static int set_node(redlock_config_t *c, uint64_t value)
{
    return redlock_config_set_node_timeout_ms(c, (uint32_t)value);
}

/* Sets the idle time before TCP probes in ms. */
static int set_keepalive(redlock_config_t *c, uint64_t value)
{
    return redlock_config_set_keepalive_ms(c, (uint32_t)value);
}

/* Sets the part of the drift that grows with the TTL, in millionths. */
static int set_ppm(redlock_config_t *c, uint64_t value)
{
    return redlock_config_set_drift(c, (uint32_t)value, 77);
}

/* Sets the constant part of the drift. */
static int set_constant(redlock_config_t *c, uint64_t value)
{
    return redlock_config_set_drift(c, 77, (uint32_t)value);
}

#define FIELD(name)                                                                                \
    offsetof(struct redlock_config, name), sizeof(((struct redlock_config *)NULL)->name)

static const struct {
    int (*set)(redlock_config_t *config, uint64_t value);
    size_t offset, size; /* of the field */
    uint64_t min, max, type_max;
    const char *says;
} RANGES[] = {
    {redlock_config_set_max_ttl_ms, FIELD(max_ttl_ms), 10, 86400000, UINT64_MAX,
     "ms is out of range; use 10 to 86400000"},
    {set_connect, FIELD(connect_timeout_ms), 1, 60000, UINT32_MAX, "use 1 to 60000"},
    {set_node, FIELD(node_timeout_ms), 0, 60000, UINT32_MAX, "use 0 to 60000"},
    {set_keepalive, FIELD(keepalive_ms), 0, 3600000, UINT32_MAX, "use 0 to 3600000"},
    {set_retry_min, FIELD(retry_ms_min), 1, 60000, UINT32_MAX, "use 1 to 60000"},
    {set_retry_max, FIELD(retry_ms_max), 50, 60000, UINT32_MAX, "use 50 to 60000"},
    {set_ppm, FIELD(drift.ppm), 0, 500000, UINT32_MAX, "ppm is out of range; use 0 to 500000"},
    {set_constant, FIELD(drift.constant_us), 0, 1000000, UINT32_MAX, "use 0 to 1000000"},
};

/* Returns the value of a field of the configuration. */
static uint64_t field(size_t offset, size_t size)
{
    uint64_t wide = 0;
    uint32_t narrow = 0;
    const char *at = (const char *)config + offset;
    if (size == sizeof wide)
        memcpy(&wide, at, sizeof wide);
    else
        memcpy(&narrow, at, sizeof narrow);
    return size == sizeof wide ? wide : narrow;
}

START_TEST(every_number_has_its_range)
{
    uint64_t good[] = {RANGES[_i].min, RANGES[_i].min + 1, RANGES[_i].max - 1, RANGES[_i].max};
    uint64_t bad[] = {RANGES[_i].max + 1, RANGES[_i].type_max, RANGES[_i].min - 1, 0};
    size_t bad_count = RANGES[_i].min > 0 ? 4 : 2;

    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(RANGES[_i].set(config, good[i]), 0);
        ck_assert_uint_eq(field(RANGES[_i].offset, RANGES[_i].size), good[i]);
    }
    ck_assert_str_eq(redlock_config_error(config), "");
    struct redlock_config before = *config;
    for (size_t i = 0; i < bad_count; i++) {
        ck_assert_int_eq(RANGES[_i].set(config, bad[i]), REDLOCK_EINVAL);
        expect_error(RANGES[_i].says);
        ck_assert_mem_eq(config, &before, offsetof(struct redlock_config, error));
    }
}
END_TEST

START_TEST(only_known_modes_are_accepted)
{
    static const int bad[] = {0, 4, -1, 1 << 30};
    for (int mode = 1; mode <= 3; mode++) {
        ck_assert_int_eq(redlock_config_set_mode(config, mode), 0);
        ck_assert_int_eq(config->mode, mode);
    }
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(redlock_config_set_mode(config, bad[i]), REDLOCK_EINVAL);
        ck_assert_int_eq(config->mode, 3);
        expect_error("use one of enum redlock_mode");
    }
}
END_TEST

/* ---- texts ---- */

START_TEST(a_prefix_may_have_any_bytes_up_to_its_limit)
{
    char text[RL_PREFIX_MAX + 2];
    memset(text, 'p', sizeof text - 1);
    text[sizeof text - 1] = '\0';

    ck_assert_int_eq(redlock_config_set_key_prefix(config, "app:\x01 \xff"), 0);
    ck_assert_str_eq(config->prefix, "app:\x01 \xff"); /* keys are bytes */
    ck_assert_uint_eq(config->prefix_len, 7);
    ck_assert_int_eq(redlock_config_set_key_prefix(config, text), REDLOCK_EINVAL);
    expect_error("longer than 256 bytes");
    ck_assert_int_eq(redlock_config_set_key_prefix(config, NULL), REDLOCK_EINVAL);
    expect_error("use \"\" for none");
    ck_assert_uint_eq(config->prefix_len, 7);
    ck_assert_int_eq(redlock_config_set_key_prefix(config, text + 1), 0);
    ck_assert_uint_eq(config->prefix_len, RL_PREFIX_MAX);
    ck_assert_int_eq(redlock_config_set_key_prefix(config, ""), 0);
    ck_assert_uint_eq(config->prefix_len, 0);
}
END_TEST

START_TEST(an_owner_has_printable_bytes_only)
{
    char text[RL_OWNER_MAX + 2];
    char one[2] = "";
    memset(text, 'o', sizeof text - 1);
    text[sizeof text - 1] = '\0';

    ck_assert_int_eq(redlock_config_set_owner(config, "ada@web3/4711"), 0);
    ck_assert_str_eq(config->owner, "ada@web3/4711");
    ck_assert_uint_eq(config->owner_len, 13);
    for (unsigned byte = 1; byte < 256; byte++) {
        one[0] = (char)byte;
        ck_assert_int_eq(redlock_config_set_owner(config, one),
                         byte > ' ' && byte < 0x7f ? 0 : REDLOCK_EINVAL);
    }
    expect_error("owner label: it contains a byte that is not ASCII; "
                 "use up to 128 printable");
    ck_assert_str_eq(config->owner, "~"); /* the last one that was good */
    ck_assert_int_eq(redlock_config_set_owner(config, "a b"), REDLOCK_EINVAL);
    expect_error("it contains a blank");
    ck_assert_int_eq(redlock_config_set_owner(config, text), REDLOCK_EINVAL);
    expect_error("it is too long");
    ck_assert_int_eq(redlock_config_set_owner(config, NULL), REDLOCK_EINVAL);
    expect_error("NULL given");
    ck_assert_int_eq(redlock_config_set_owner(config, text + 1), 0);
    ck_assert_uint_eq(config->owner_len, RL_OWNER_MAX);
    ck_assert_int_eq(redlock_config_set_owner(config, ""), 0);
    ck_assert_uint_eq(config->owner_len, 0);
}
END_TEST

/* The label of a client without one: that of the process that creates it, a forked child, too. */
START_TEST(an_owner_is_the_process_by_default)
{
    char host[65] = "";
    long pid = 0;
    unsigned long long second = 0;
    const unsigned long long begin = (unsigned long long)time(NULL);

    rl_config_label(config);
    ck_assert_uint_eq(config->owner_len, strlen(config->owner));
    ck_assert_int_eq(sscanf(config->owner, "%64[^/]/%ld/%llu", host, &pid, &second), 3);
    ck_assert_int_eq(pid, getpid());
    ck_assert(second >= begin && second <= (unsigned long long)time(NULL));
    /* A label that is set stays, also none. */
    ck_assert_int_eq(redlock_config_set_owner(config, "mine"), 0);
    rl_config_label(config);
    ck_assert_str_eq(config->owner, "mine");
    ck_assert_int_eq(redlock_config_set_owner(config, ""), 0);
    rl_config_label(config);
    ck_assert_uint_eq(config->owner_len, 0);
}
END_TEST

START_TEST(users_and_passwords_are_checked)
{
    static const struct {
        const char *user, *password, *says;
    } bad[] = {
        {"ada", NULL, "given without a password"},
        {"ada", "", "password: it is empty"},
        {NULL, "", "password: it is empty"},
        {"a b", "secret", "user: it contains a blank"},
        {"a\x01", "secret", "user: it contains a control byte"},
        {"ada", "secret\n", "password: it contains a control byte"}, /* read from a file */
    };
    ck_assert_int_eq(redlock_config_set_auth(config, "ada", "pass word \xc3\xa4"), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(redlock_config_set_auth(config, bad[i].user, bad[i].password),
                         REDLOCK_EINVAL);
        expect_error(bad[i].says);
        ck_assert_ptr_null(strstr(redlock_config_error(config), "secret"));
        ck_assert_str_eq(config->user, "ada");
        ck_assert_str_eq(config->password, "pass word \xc3\xa4");
    }
    ck_assert_int_eq(redlock_config_set_auth(config, NULL, "other"), 0);
    ck_assert_ptr_null(config->user);
    ck_assert_str_eq(config->password, "other");
    ck_assert_int_eq(redlock_config_set_auth(config, "", "third"), 0);
    ck_assert_ptr_null(config->user);
    ck_assert_int_eq(redlock_config_set_auth(config, NULL, NULL), 0);
    ck_assert_ptr_null(config->password);
}
END_TEST

START_TEST(users_and_passwords_have_a_length_limit)
{
    char user[RL_USER_MAX + 2];
    char password[RL_PASSWORD_MAX + 2];
    memset(user, 'u', sizeof user - 1);
    memset(password, 'p', sizeof password - 1);
    user[sizeof user - 1] = password[sizeof password - 1] = '\0';
    ck_assert_int_eq(redlock_config_set_auth(config, user + 1, password + 1), 0);
    ck_assert_int_eq(redlock_config_set_auth(config, user, "p"), REDLOCK_EINVAL);
    expect_error("user: it is too long");
    ck_assert_int_eq(redlock_config_set_auth(config, "u", password), REDLOCK_EINVAL);
    expect_error("password: it is too long");
}
END_TEST

/* ---- functions ---- */

START_TEST(log_and_event_functions_are_checked)
{
    int mark;
    for (int level = REDLOCK_LOG_ERROR; level <= REDLOCK_LOG_DEBUG; level++)
        ck_assert_int_eq(redlock_config_set_log(config, level, ignore_log, &mark), 0);
    ck_assert_int_eq(redlock_config_set_log(config, 0, ignore_log, NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_set_log(config, 5, ignore_log, NULL), REDLOCK_EINVAL);
    expect_error("log level: 5 is unknown");
    ck_assert(config->log.fn == ignore_log && config->log.userdata == &mark);
    ck_assert_int_eq(config->log.level_max, REDLOCK_LOG_DEBUG);
    ck_assert_int_eq(redlock_config_set_log(config, 0, NULL, NULL), 0); /* off */
    ck_assert(config->log.fn == NULL);

    ck_assert_int_eq(redlock_config_set_event(config, ignore_event, &mark), 0);
    ck_assert(config->event_fn == ignore_event && config->event_userdata == &mark);
    ck_assert_int_eq(redlock_config_set_event(config, NULL, NULL), 0);
    ck_assert(config->event_fn == NULL);
}
END_TEST

/* ---- nodes ---- */

START_TEST(nodes_over_several_calls)
{
    ck_assert_int_eq(redlock_config_add_nodes(config, "a,b"), 0);
    ck_assert_int_eq(redlock_config_add_nodes(config, "redis://c"), 0);
    ck_assert_uint_eq(config->node_count, 3);
    ck_assert_int_eq(redlock_config_add_nodes(config, "d,B:6379"), REDLOCK_EINVAL);
    expect_error("same server as number 2 (b:6379)");
    ck_assert_int_eq(redlock_config_add_nodes(config, ""), REDLOCK_EINVAL);
    expect_error("no server address given");
    ck_assert_int_eq(redlock_config_add_nodes(config, NULL), REDLOCK_EINVAL);
    expect_error("NULL given");
    ck_assert_uint_eq(config->node_count, 3);
    ck_assert_int_eq(redlock_config_add_nodes(config, "d"), 0);
    expect_error("NULL given"); /* the text of the last error is kept */
}
END_TEST

START_TEST(refusal_is_bounded)
{
    char text[2 * sizeof config->error];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    rl_config_refuse(config, "%s", text);
    ck_assert_uint_eq(strlen(redlock_config_error(config)), sizeof config->error - 1);
    rl_config_refuse(config, "ttl: %d ms", 5);
    ck_assert_str_eq(redlock_config_error(config), "ttl: 5 ms");
}
END_TEST

/* ---- memory ---- */

static const redlock_allocator_t ALLOCATOR = {.size = sizeof ALLOCATOR,
                                              .malloc_fn = heap_malloc,
                                              .realloc_fn = heap_realloc,
                                              .free_fn = heap_free};

/* Builds and frees a configuration. Returns 0 or the first error. */
static int build(struct heap *heap)
{
    redlock_allocator_t allocator = ALLOCATOR;
    allocator.userdata = heap;
    int rc = redlock_config_new(&config, &allocator);
    if (rc != 0)
        return rc;
    if ((rc = redlock_config_add_nodes(config, "a,redis://QQ:QQ@b")) != 0)
        ck_assert_uint_eq(config->node_count, 0);
    else if ((rc = redlock_config_set_auth(config, "QQ", "QQQ")) != 0)
        ck_assert(config->user == NULL && config->password == NULL);
    else if ((rc = redlock_config_set_auth(config, "QQQQ", "QQQQQ")) != 0)
        ck_assert(strcmp(config->user, "QQ") == 0 && strcmp(config->password, "QQQ") == 0);
    if (rc != 0)
        expect_error("out of memory");
    redlock_config_free(config);
    return rc;
}

START_TEST(out_of_memory_at_every_allocation)
{
    int allocations = 0;
    for (int rc = -1; rc != 0; allocations++) {
        struct heap heap = {.left = allocations};
        rc = build(&heap);
        ck_assert(rc == 0 || rc == REDLOCK_ENOMEM);
        ck_assert_int_eq(heap.live, 0);
        ck_assert(!heap.has_secrets); /* wiped before they were freed */
    }
    ck_assert_int_eq(allocations, 10); /* itself, 2 nodes, 3 users, 3 passwords; then none failed */
}
END_TEST

START_TEST(allocators_are_checked)
{
    struct {
        redlock_allocator_t allocator;
        void *later_field;
    } newer = {.allocator = ALLOCATOR};
    struct heap heap = {.left = 100};
    struct redlock_config *untouched = NULL;

    redlock_allocator_t bad[5] = {ALLOCATOR, ALLOCATOR, ALLOCATOR, ALLOCATOR, ALLOCATOR};
    bad[0].size = 0;
    bad[1].size--;
    bad[2].malloc_fn = NULL;
    bad[3].realloc_fn = NULL;
    bad[4].free_fn = NULL;
    for (size_t i = 0; i < 5; i++)
        ck_assert_int_eq(redlock_config_new(&untouched, &bad[i]), REDLOCK_EINVAL);

    newer.allocator.userdata = &heap;
    newer.allocator.size = sizeof newer;
    newer.later_field = &heap; /* a field that this version does not know */
    ck_assert_int_eq(redlock_config_new(&untouched, &newer.allocator), REDLOCK_EINVAL);
    ck_assert_ptr_null(untouched);
    newer.later_field = NULL;
    ck_assert_int_eq(redlock_config_new(&untouched, &newer.allocator), 0);
    redlock_config_free(untouched);
    ck_assert_int_eq(heap.live, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api_config");
    TCase *tcase = tcase_create("setters");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_new_configuration_has_the_defaults);
    tcase_add_test(tcase, the_validity_excludes_drift_and_margin);
    tcase_add_test(tcase, null_is_refused_everywhere);
    tcase_add_loop_test(tcase, every_number_has_its_range, 0, sizeof RANGES / sizeof RANGES[0]);
    tcase_add_test(tcase, only_known_modes_are_accepted);
    tcase_add_test(tcase, a_prefix_may_have_any_bytes_up_to_its_limit);
    tcase_add_test(tcase, an_owner_has_printable_bytes_only);
    tcase_add_test(tcase, an_owner_is_the_process_by_default);
    tcase_add_test(tcase, users_and_passwords_are_checked);
    tcase_add_test(tcase, users_and_passwords_have_a_length_limit);
    tcase_add_test(tcase, log_and_event_functions_are_checked);
    tcase_add_test(tcase, nodes_over_several_calls);
    tcase_add_test(tcase, refusal_is_bounded);

    tcase = tcase_create("memory");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, out_of_memory_at_every_allocation);
    tcase_add_test(tcase, allocators_are_checked);
    return suite_run(suite);
}
