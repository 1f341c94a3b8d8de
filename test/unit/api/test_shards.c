/* SPDX-License-Identifier: MIT
 * Shards: the shard of each name, and how shards are configured. The hash function is a published
 * one; another program computed the vectors.
 *
 * Uses failing_allocator.h: an allocator that fails after heap.left calls, counts its live blocks,
 * and notices freed blocks that begin with a Q, as every password in these tests does. */
/* Saves the time of Check's note about each assertion; see suite.h. */
#define SUITE_MANY_ASSERTIONS
#include "api/client.h"
#include "api/fence.h"
#include "api/operation.h"
#include "api/review.h"
#include "core/hash_tag.h"
#include "engine/record.h"
#include "platform/hash.h"

#include <stdio.h>
#include <string.h>

#include "failing_allocator.h"
#include "suite.h"

#define NAMES 30000

static redlock_config_t *config;
static redlock_t *client;

/* Fixture: creates a configuration of an embedded client. */
static void setup(void)
{
    ck_assert_int_eq(redlock_config_new(&config, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_mode(config, REDLOCK_MODE_EMBEDDED), REDLOCK_OK);
}

/* Fixture: frees the client, if there is one, and the configuration. */
static void teardown(void)
{
    redlock_free(client); /* its loop never ran, so it has no connections */
    client = NULL;
    redlock_config_free(config);
}

/* Creates the client anew, with these shards. */
static void create_client(const char *sets)
{
    redlock_free(client);
    redlock_config_free(config);
    setup();
    ck_assert_msg(redlock_config_add_nodes(config, sets) == REDLOCK_OK, "%s",
                  redlock_config_error(config));
    ck_assert_int_eq(redlock_new(&client, config), REDLOCK_OK);
}

/* Returns the name of the shard to which the resource belongs. */
static const char *shard_name_of(const char *resource)
{
    return redlock_shard_name(client, (size_t)redlock_shard_of(client, resource));
}

/* Checks the hash tag of a name. */
static void expect_hash_tag(const char *name, const char *expected)
{
    const struct rl_arg group = rl_hash_tag((struct rl_arg){name, strlen(name)});
    ck_assert_msg(group.len == strlen(expected) && memcmp(group.data, expected, group.len) == 0,
                  "%s: %.*s instead of %s", name, (int)group.len, group.data, expected);
}

START_TEST(the_hash_tag_of_a_name)
{
    static const struct {
        const char *name, *group;
    } cases[] = {
        {"orders:42", "orders:42"},
        {"{order:7}:pay", "order:7"},
        {"pay:{order:7}", "order:7"},
        {"{a}{b}", "a"},
        {"{{a}}", "{a"},
        {"}{a}", "a"},
        {"{}", "{}"},
        {"{}{a}", "{}{a}"}, /* as in Redis Cluster, only the first pair counts */
        {"{a", "{a"},
        {"a}", "a}"},
        {"sem{#0}", "sem"},
        {"sem{#1023}", "sem"},
        {"{team}sem{#3}", "team"},
        {"sem{#3}x", "#3"},
        {"sem{#}", "#"},
        {"sem{3}", "3"},
        {"{#3}", "#3"}, /* without a name before it this is no slot */
        {"sem{#3}{#4}", "#3"},
        {"3}", "3}"},
        {"#3}", "#3}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_hash_tag(cases[i].name, cases[i].group);
}
END_TEST

START_TEST(scores_are_stable)
{
    char longest[RL_RESOURCE_MAX];
    memset(longest, 'x', sizeof longest);
    ck_assert_uint_eq(rl_hash_score("east", 4, "orders:42", 9), 0x058aef1607a8b857);
    ck_assert_uint_eq(rl_hash_score("west", 4, "orders:42", 9), 0x23e87a0a9e80fbe6);
    ck_assert_uint_eq(rl_hash_score("north", 5, "orders:42", 9), 0xdf507452dca5a789);
    ck_assert_uint_eq(rl_hash_score("a", 1, "", 0), 0x2883b84367256d8d);
    ck_assert_uint_eq(rl_hash_score("a", 1, longest, sizeof longest), 0x5957d72c622a88e8);
}
END_TEST

START_TEST(shards_of_names_are_stable)
{
    static const struct {
        const char *name, *set;
    } cases[] = {
        {"orders:42", "north"}, {"orders:43", "east"},
        {"orders:44", "west"},  {"a", "north"},
        {"b", "east"},          {"printer", "west"},
        {"order:7", "west"},    {"x{order:7}pay", "west"},
    };
    /* The order, the addresses and the prefix do not matter. */
    static const char *const lists[] = {
        "east=h:1,h:2,h:3;west=h:4,h:5,h:6;north=h:7,h:8,h:9",
        "north=h:7,h:8,h:9;east=h:1,h:2,h:3;west=h:4,h:5,h:6",
        "west=h:9; north=other:1 other:2 other:3 ; east=h:3?id=three,h:1",
    };
    for (size_t list = 0; list < sizeof lists / sizeof lists[0]; list++) {
        create_client(lists[list]);
        ck_assert_uint_eq(redlock_shard_count(client), 3);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            ck_assert_msg(strcmp(shard_name_of(cases[i].name), cases[i].set) == 0, "%s: %s",
                          cases[i].name, shard_name_of(cases[i].name));
    }
}
END_TEST

/* Names move to an added shard from all others alike, and not between the others. */
START_TEST(shards_are_balanced_and_names_move_to_an_added_one_only)
{
    static const char *const lists[] = {"a=h:1;b=h:2;c=h:3;d=h:4;e=h:5",
                                        "e=h:5;a=h:1;f=h:6;b=h:2;c=h:3;d=h:4"};
    static char before[NAMES];
    unsigned counts[2][8] = {{0}}, moved = 0;
    for (unsigned list = 0; list < 2; list++) {
        create_client(lists[list]);
        for (unsigned i = 0; i < NAMES; i++) {
            char name[32];
            snprintf(name, sizeof name, "orders:%u", i);
            const char set = *shard_name_of(name);
            counts[list][set - 'a']++;
            if (list == 1 && set != before[i]) {
                ck_assert_int_eq(set, 'f');
                moved++;
            }
            before[i] = set;
        }
    }
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_uint_ge(counts[0][i], NAMES / 5 * 95 / 100);
        ck_assert_uint_le(counts[0][i], NAMES / 5 * 105 / 100);
        ck_assert_uint_ge(counts[1][i], NAMES / 6 * 95 / 100);
        ck_assert_uint_le(counts[1][i], NAMES / 6 * 105 / 100);
    }
    ck_assert_uint_eq(moved, counts[1][5]);
}
END_TEST

START_TEST(one_shard_has_no_name)
{
    create_client("h:1,h:2,h:3");
    ck_assert_uint_eq(redlock_shard_count(client), 1);
    ck_assert_str_eq(redlock_shard_name(client, 0), "");
    ck_assert_ptr_null(redlock_shard_name(client, 1));
    ck_assert_ptr_null(redlock_shard_name(NULL, 0));
    ck_assert_int_eq(redlock_shard_of(client, "x"), 0);
    ck_assert_int_eq(redlock_shard_of(client, ""), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_shard_of(client, NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_shard_of(NULL, "x"), REDLOCK_EINVAL);
    char name[RL_RESOURCE_MAX + 2];
    memset(name, 'x', sizeof name);
    name[RL_RESOURCE_MAX + 1] = '\0';
    ck_assert_int_eq(redlock_shard_of(client, name), REDLOCK_EINVAL);
    name[RL_RESOURCE_MAX] = '\0';
    ck_assert_int_eq(redlock_shard_of(client, name), 0);
    ck_assert_uint_eq(redlock_shard_count(NULL), 0);
}
END_TEST

/* Checks that the last error contains this text. */
static void expect_error(const char *part)
{
    ck_assert_msg(strstr(redlock_config_error(config), part) != NULL, "\"%s\" is not in \"%s\"",
                  part, redlock_config_error(config));
}

/* Checks the number of shards and of servers in the configuration. */
static void expect_shards(unsigned sets, size_t nodes)
{
    ck_assert_uint_eq(config->shard_count, sets);
    ck_assert_uint_eq(config->node_count, nodes);
}

START_TEST(shards_can_be_added_one_by_one)
{
    char name[RL_SHARD_NAME_MAX + 2];
    ck_assert_int_eq(redlock_config_add_shard(config, "east", "h:1 h:2,h:3"), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_add_shard(config, "West-2.b_", "h:4"), REDLOCK_OK);
    expect_shards(2, 4);
    ck_assert_uint_eq(config->shards[1].first, 3);
    ck_assert_uint_eq(config->shards[1].count, 1);
    ck_assert_int_eq(redlock_config_add_shard(config, "east", "h:5"), REDLOCK_EINVAL);
    expect_error("shard 'east': it exists already");
    ck_assert_int_eq(redlock_config_add_shard(config, "north", "h:5,h:3"), REDLOCK_EINVAL);
    expect_error("shard 'north': server address 2 (h:3): same server as number 3 (h:3)");
    ck_assert_int_eq(redlock_config_add_shard(config, "north", ""), REDLOCK_EINVAL);
    expect_error("no server address given");
    ck_assert_int_eq(redlock_config_add_shard(config, "", "h:5"), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_add_shard(config, "a b", "h:5"), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_add_shard(config, "a=b", "h:5"), REDLOCK_EINVAL);
    expect_error("it must be 1 to 64 letters");
    memset(name, 'n', sizeof name);
    name[RL_SHARD_NAME_MAX + 1] = '\0';
    ck_assert_int_eq(redlock_config_add_shard(config, name, "h:5"), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_add_shard(config, NULL, "h:5"), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_add_shard(config, "north", NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_add_shard(NULL, "north", "h:5"), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_add_nodes(config, "h:5"), REDLOCK_EINVAL);
    expect_error("there are shards already");
    expect_shards(2, 4);
    name[RL_SHARD_NAME_MAX] = '\0';
    ck_assert_int_eq(redlock_config_add_shard(config, name, "h:5"), REDLOCK_OK);
    expect_shards(3, 5);
}
END_TEST

START_TEST(shards_and_servers_without_a_shard_do_not_mix)
{
    ck_assert_int_eq(redlock_config_add_nodes(config, "h:1"), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_add_nodes(config, "h:2,h:3"), REDLOCK_OK);
    expect_shards(1, 3);
    ck_assert_int_eq(redlock_config_add_shard(config, "east", "h:4"), REDLOCK_EINVAL);
    expect_error("there are servers without a shard");
    ck_assert_int_eq(redlock_config_add_nodes(config, "east=h:4"), REDLOCK_EINVAL);
    expect_shards(1, 3);
    ck_assert_uint_eq(config->shards[0].count, 3);
}
END_TEST

START_TEST(an_invalid_list_adds_nothing)
{
    static const struct {
        const char *list, *error;
    } wrong[] = {
        {"east=h:1;east=h:2", "shard 'east': it exists already"},
        {"east=h:1;west=h:1", "same server as number 1"},
        {"east=h:1;west=", "shard 'west': no server address given"},
        {"east=;west=h:1", "shard 'east': no server address given"},
        {"east=h:1,west=h:x", "shard 'west'"},
        {"east=west=h:1", "shard 'east'"},
        {"h:1;east=h:2", "server address 1"},
        {"=h:1", "server address 1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(redlock_config_add_nodes(config, wrong[i].list) == REDLOCK_EINVAL, "%s",
                      wrong[i].list);
        expect_error(wrong[i].error);
        expect_shards(0, 0);
    }
    ck_assert_int_eq(redlock_config_add_nodes(config, " ;, east=h:1 h:2;h:3 west=h:4,h:5 ; "
                                                      "north=redis://h:6?id=west=1\n"),
                     REDLOCK_OK);
    expect_shards(3, 6);
    ck_assert_str_eq(config->shards[0].name, "east");
    ck_assert_uint_eq(config->shards[0].count, 3);
    ck_assert_str_eq(config->shards[1].name, "west");
    ck_assert_uint_eq(config->shards[1].count, 2);
    ck_assert_uint_eq(config->shards[2].first, 5);
    ck_assert_int_eq(redlock_config_add_nodes(config, "south=h:7"), REDLOCK_OK);
    expect_shards(4, 7);
}
END_TEST

/* The second shard of the list is refused after the first was added. */
START_TEST(a_refused_list_of_shards_leaves_no_name)
{
    ck_assert_int_eq(redlock_config_add_nodes(config, "a=h:1;b=h:x"), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_add_nodes(config, "h:1"), REDLOCK_OK);
    ck_assert_str_eq(config->shards[0].name, "");
    ck_assert_int_eq(redlock_config_add_nodes(config, "h:2"), REDLOCK_OK);
    expect_shards(1, 2);
}
END_TEST

START_TEST(the_number_of_shards_is_limited)
{
    char list[1024] = "", part[32];
    for (unsigned i = 0; i < REDLOCK_SHARDS_MAX; i++) {
        snprintf(part, sizeof part, "s%u=h:%u;", i, i + 1);
        strcat(list, part);
    }
    strcat(list, "last=h:99");
    ck_assert_int_eq(redlock_config_add_nodes(config, list), REDLOCK_EINVAL);
    expect_error("more than 16 shards");
    expect_shards(0, 0);
    *strstr(list, ";last") = '\0';
    ck_assert_int_eq(redlock_config_add_nodes(config, list), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_add_shard(config, "last", "h:99"), REDLOCK_EINVAL);
    expect_error("more than 16 shards");
    list[0] = '\0';
    for (unsigned i = 0; i <= REDLOCK_NODES_MAX - REDLOCK_SHARDS_MAX; i++) {
        snprintf(part, sizeof part, "h:%u,", 100 + i);
        strcat(list, part);
    }
    redlock_config_free(config);
    setup();
    ck_assert_int_eq(redlock_config_add_nodes(config, "a=b:1,b:2,b:3,b:4,b:5,b:6,b:7,b:8,b:9,b:10,"
                                                      "b:11,b:12,b:13,b:14,b:15,b:16"),
                     REDLOCK_OK);
    ck_assert_int_eq(redlock_config_add_shard(config, "c", list), REDLOCK_EINVAL);
    expect_error("more than 31 servers");
    expect_shards(1, 16);
}
END_TEST

/* Passwords may contain any separator, and any part of the list may be wrong. */
START_TEST(passwords_are_not_shown)
{
    static const char *const lists[] = {
        "east=redis://u:se;west=cret@h:1",      "east=redis://u:secret;x@h:1",
        "east=redis://u:secret@h:1;west=h:x",   "east=h:x;west=redis://u:secret@h:1",
        "east=redis://u:secret,x@h:1",          "east=u:secret@h:1",
        "east=redis://u:secret@h:1,h:1;west=h", "east=redis://u:secret@h:y",
        "east=redis://u:secret west=x@h",       "east=redis://se$cret;west=x@h:1",
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (redlock_config_add_nodes(config, lists[i]) == REDLOCK_OK)
            ck_abort_msg("%s was taken", lists[i]);
        ck_assert_msg(strstr(redlock_config_error(config), "cret") == NULL, "%s",
                      redlock_config_error(config));
        expect_shards(0, 0);
    }
}
END_TEST

/* A block of an allocator that searches freed blocks for a password. */
struct block {
    size_t size;
    char bytes[];
};

/* Allocates a block. */
static void *block_malloc(size_t size, void *userdata)
{
    struct block *block = malloc(sizeof *block + size);
    (void)userdata;
    block->size = size;
    memset(block->bytes, 0, size);
    return block->bytes;
}

/* Frees a block. `userdata`: a bool that becomes true if the block contains the password. */
static void block_free(void *ptr, void *userdata)
{
    struct block *block = (struct block *)((char *)ptr - sizeof *block);
    bool *secret = userdata;
    *secret = *secret || memmem(block->bytes, block->size, "Qsecret", 7) != NULL;
    free(block);
}

/* Reallocates a block. */
static void *block_realloc(void *ptr, size_t size, void *userdata)
{
    char *bytes = block_malloc(size, userdata);
    const struct block *old = (const struct block *)((char *)ptr - sizeof *old);
    if (ptr != NULL) {
        memcpy(bytes, ptr, old->size < size ? old->size : size);
        block_free(ptr, userdata);
    }
    return bytes;
}

/* Copies of the list and of its parts are wiped, too. */
START_TEST(passwords_are_wiped)
{
    static const char *const lists[] = {"east=redis://u:Qsecret@h:1;west=h:2",
                                        "east=h:2;west=redis://u:Qsecret@h:1,h:x"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        bool secret = false;
        const redlock_allocator_t allocator = {sizeof allocator, block_malloc, block_realloc,
                                               block_free, &secret};
        redlock_config_t *own;
        ck_assert_int_eq(redlock_config_new(&own, &allocator), REDLOCK_OK);
        (void)!redlock_config_add_nodes(own, lists[i]);
        redlock_config_free(own);
        ck_assert_msg(!secret, "%s", lists[i]);
    }
}
END_TEST

/* Writes the fence fingerprint of shard `name` in this list of shards. */
static void fingerprint(const char *sets, const char *name, char ret[RL_FENCE_TEXT_MAX + 1])
{
    redlock_config_free(config);
    setup();
    ck_assert_int_eq(redlock_config_add_nodes(config, sets), REDLOCK_OK);
    for (unsigned i = 0; i < config->shard_count; i++) {
        if (strcmp(config->shards[i].name, name) == 0)
            ret[rl_fence_config_text(config, &config->shards[i], ret)] = '\0';
    }
}

/* Clients that assign a name to different shards must have different fingerprints. */
START_TEST(fence_fingerprints_depend_on_the_shards)
{
    char plain[RL_FENCE_TEXT_MAX + 1], one[RL_FENCE_TEXT_MAX + 1], other[RL_FENCE_TEXT_MAX + 1];
    fingerprint("h:1,h:2,h:3", "", plain);
    /* The same on all processors; computed with another program. */
    ck_assert_str_eq(
        plain, "v1 k=1024 nodes=3 max_ttl=30000 durable=1 set=137e2bdb9a903ab1bdea257e3d5a9aa3 "
               "prefix=cae66941d9efbd404e4d88758ea67670;");
    fingerprint("east=h:3,h:1,h:2", "east", one);
    ck_assert_str_eq(plain, one); /* with a single shard its name does not matter */
    fingerprint("east=h:1,h:2,h:3;west=h:4", "east", one);
    ck_assert_str_ne(plain, one);
    fingerprint("west=h:4;east=h:2,h:1,h:3", "east", other);
    ck_assert_str_eq(one, other);
    fingerprint("west=h:5,h:6;east=h:2,h:1,h:3", "east", other);
    ck_assert_str_eq(one, other); /* the servers of another shard do not matter */
    fingerprint("west=h:4;east=h:1,h:2,h:9", "east", other);
    ck_assert_str_ne(one, other);
    fingerprint("west=h:4;east=h:1,h:2,h:3;north=h:7", "east", other);
    ck_assert_str_ne(one, other);
    fingerprint("north=h:4;east=h:1,h:2,h:3", "east", other);
    ck_assert_str_ne(one, other);
    fingerprint("west=h:1,h:2,h:3;east=h:4", "west", other);
    ck_assert_str_ne(one, other); /* the names are exchanged */
}
END_TEST

/* Builds and frees a client with shards. Returns 0 or the first error. */
static int build(struct heap *heap)
{
    const redlock_allocator_t allocator = {sizeof allocator, heap_malloc, heap_realloc, heap_free,
                                           heap};
    redlock_config_t *own;
    redlock_t *made = NULL;
    int rc = redlock_config_new(&own, &allocator);
    if (rc != REDLOCK_OK)
        return rc;
    rc = redlock_config_set_mode(own, REDLOCK_MODE_EMBEDDED);
    if (rc == REDLOCK_OK)
        rc = redlock_config_add_nodes(own, "east=a,redis://QQ:QQ@b;west=c,redis://:QQQ@d");
    if (rc != REDLOCK_OK)
        ck_assert(own->shard_count == 0 && own->node_count == 0);
    if (rc == REDLOCK_OK)
        rc = redlock_new(&made, own);
    redlock_free(made);
    redlock_config_free(own);
    return rc;
}

START_TEST(out_of_memory_at_every_allocation)
{
    int allocations = 0;
    for (int rc = -1; rc != REDLOCK_OK; allocations++) {
        struct heap heap = {.left = allocations};
        rc = build(&heap);
        ck_assert(rc == REDLOCK_OK || rc == REDLOCK_ENOMEM);
        ck_assert_int_eq(heap.live, 0);
        ck_assert(!heap.has_secrets);
    }
    ck_assert_int_gt(allocations, 12);
}
END_TEST

/* Counts the calls, and keeps the last status. */
struct ended {
    unsigned calls;
    int status;
};

/* A redlock_done_fn whose userdata is a struct ended. */
static void note_ended(redlock_t *rl, int status, redlock_lock_t *lock,
                       const redlock_report_t *report, void *userdata)
{
    struct ended *ended = userdata;

    (void)rl, (void)lock, (void)report;
    ended->calls++;
    ended->status = status;
}

/* An initialisation of fence records works on all shards, so it goes on when one of them has
 * failed. A wait for readiness ends then. */
START_TEST(one_failed_shard_ends_a_wait_but_no_initialisation)
{
    static struct ended init, ready; /* the client may outlive the case */

    create_client("east=unix:///nowhere/east;west=unix:///nowhere/west");
    ck_assert_int_eq(redlock_init_fence_records_start(client, 3600000, NULL, note_ended, &init),
                     REDLOCK_OK);
    ck_assert_int_eq(redlock_wait_ready_start(client, 3600000, NULL, note_ended, &ready),
                     REDLOCK_OK);
    client->shards[0].engine.view.duplicate = true;
    client->shards[1].engine.records->init_done = false;
    rl_review(client);
    ck_assert(!rl_review_has(client, RL_OP_READY));
    ck_assert(rl_review_has(client, RL_OP_FENCE_INIT));
    client->shards[1].engine.records->init_done = true;
    rl_review(client);
    ck_assert(!rl_review_has(client, RL_OP_FENCE_INIT));
    (void)redlock_process(client);
    ck_assert_uint_eq(ready.calls, 1);
    ck_assert_int_eq(ready.status, REDLOCK_EDUPLICATE);
    ck_assert_uint_eq(init.calls, 1);
    ck_assert_int_eq(init.status, REDLOCK_EDUPLICATE);
}
END_TEST

/* The loop turns at the time limit of a wait, also if no server needs it so soon. */
START_TEST(the_timer_includes_the_limits_of_waits)
{
    static struct ended ready; /* teardown() ends the last wait */
    unsigned ended = 0;

    create_client("unix:///nowhere/at/all"); /* the next connection is tried after 37 ms or more */
    for (;;) {
        ck_assert_int_eq(redlock_wait_ready_start(client, 20, NULL, note_ended, &ready),
                         REDLOCK_OK);
        (void)redlock_process(client);
        if (ready.calls == ended)
            break;
        ended = ready.calls; /* the machine was busy for so long that the wait has ended */
    }
    ck_assert_ptr_nonnull(client->client_ops);
    ck_assert_uint_le(atomic_load(&client->io.poller.armed_boot_ns),
                      client->client_ops->until.boot_ns);
}
END_TEST

static Suite *shards_suite(void)
{
    Suite *suite = suite_create("api_shards");
    TCase *tcase = tcase_create("sets");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_hash_tag_of_a_name);
    tcase_add_test(tcase, scores_are_stable);
    tcase_add_test(tcase, shards_of_names_are_stable);
    tcase_add_test(tcase, shards_are_balanced_and_names_move_to_an_added_one_only);
    tcase_add_test(tcase, one_shard_has_no_name);
    tcase_add_test(tcase, shards_can_be_added_one_by_one);
    tcase_add_test(tcase, shards_and_servers_without_a_shard_do_not_mix);
    tcase_add_test(tcase, an_invalid_list_adds_nothing);
    tcase_add_test(tcase, a_refused_list_of_shards_leaves_no_name);
    tcase_add_test(tcase, the_number_of_shards_is_limited);
    tcase_add_test(tcase, passwords_are_not_shown);
    tcase_add_test(tcase, passwords_are_wiped);
    tcase_add_test(tcase, fence_fingerprints_depend_on_the_shards);
    tcase_add_test(tcase, out_of_memory_at_every_allocation);
    tcase_add_test(tcase, one_failed_shard_ends_a_wait_but_no_initialisation);
    tcase_add_test(tcase, the_timer_includes_the_limits_of_waits);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(shards_suite());
}
