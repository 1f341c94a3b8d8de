/* SPDX-License-Identifier: MIT
 * Addresses: every accepted spelling and what it becomes, every refusal and what it says, and that
 * no spelling, however wrong, gets a password into a text.
 *
 * Uses failing_allocator.h: an allocator that fails after heap.left calls, counts its live blocks,
 * and notices freed blocks that begin with a Q, as every password in these tests does.
 *
 * Uses url_list.h: parse() adds the addresses of a text to a list of parsed addresses and returns
 * 0 or an error. */
#include "api/tls_settings.h"
#include "api/url.h"

#include <redlock/redlock.h>
#include <string.h>

#include "failing_allocator.h"
#include "suite.h"
#include "url_list.h"

/* Returns the text, or "-" for NULL. */
static const char *text_or_dash(const char *text)
{
    return text == NULL ? "-" : text;
}

/* ---- what is accepted ---- */

struct accepted {
    const char *text;
    const char *host; /* or the path of a socket */
    unsigned port;    /* 0: a socket */
    unsigned db;
    const char *user, *password; /* "-": none */
    const char *name;
};

static const struct accepted ACCEPTED[] = {
    {"localhost", "localhost", 6379, 0, "-", "-", "localhost:6379"},
    {"Redis-1.Example.COM", "redis-1.example.com", 6379, 0, "-", "-", "redis-1.example.com:6379"},
    {"under_score:1", "under_score", 1, 0, "-", "-", "under_score:1"},
    {"10.0.0.1:65535", "10.0.0.1", 65535, 0, "-", "-", "10.0.0.1:65535"},
    {"h:06379", "h", 6379, 0, "-", "-", "h:6379"},
    {"h:7000/3", "h", 7000, 3, "-", "-", "h:7000/3"},
    {"[::1]", "::1", 6379, 0, "-", "-", "[::1]:6379"},
    {"[::1]:7000", "::1", 7000, 0, "-", "-", "[::1]:7000"},
    {"[0:0::0001]/2", "::1", 6379, 2, "-", "-", "[::1]:6379/2"},
    {"[FE80::A%eth0]", "fe80::a%eth0", 6379, 0, "-", "-", "[fe80::a%eth0]:6379"},
    {"redis://[fe80::a%25Eth0]:1", "fe80::a%Eth0", 1, 0, "-", "-", "[fe80::a%Eth0]:1"},
    {"redis://", "localhost", 6379, 0, "-", "-", "localhost:6379"},
    {"redis://h", "h", 6379, 0, "-", "-", "h:6379"},
    {"redis://h/", "h", 6379, 0, "-", "-", "h:6379"},
    {"redis://:7000", "localhost", 7000, 0, "-", "-", "localhost:7000"},
    {"redis:///5", "localhost", 6379, 5, "-", "-", "localhost:6379/5"},
    {"REDIS://h:1/15", "h", 1, 15, "-", "-", "h:1/15"},
    {"valkey://h", "h", 6379, 0, "-", "-", "h:6379"},
    {"ValKey://:pw@h", "h", 6379, 0, "-", "pw", "h:6379"},
    {"redis://h/2147483647", "h", 6379, 2147483647, "-", "-", "h:6379/2147483647"},
    {"redis://ada:pw@h:1/2", "h", 1, 2, "ada", "pw", "h:1/2"},
    {"redis://:pw@h", "h", 6379, 0, "-", "pw", "h:6379"},
    {"redis://:pw@", "localhost", 6379, 0, "-", "pw", "localhost:6379"},
    {"redis://ada:a:b:@h", "h", 6379, 0, "ada", "a:b:", "h:6379"},
    {"redis://a%64a:%40%2C%2f%20%25%c3%a4@h", "h", 6379, 0, "ada", "@,/ %\xc3\xa4", "h:6379"},
    {"redis://ada:pw@[::1]:7", "::1", 7, 0, "ada", "pw", "[::1]:7"},
    {"unix:///run/redis.sock", "/run/redis.sock", 0, 0, "-", "-", "unix:/run/redis.sock"},
    {"UNIX:///run/R", "/run/R", 0, 0, "-", "-", "unix:/run/R"},
    {"unix:/run/r", "/run/r", 0, 0, "-", "-", "unix:/run/r"},
    {"unix:///r?db=7", "/r", 0, 7, "-", "-", "unix:/r?db=7"},
    {"unix:///a%20b%2Cc%3F", "/a b,c?", 0, 0, "-", "-", "unix:/a b,c?"},
    {"unix:///run/redis%406379.sock", "/run/redis@6379.sock", 0, 0, "-", "-",
     "unix:/run/redis@6379.sock"},
    {"unix://ada:pw@/r?db=1", "/r", 0, 1, "ada", "pw", "unix:/r?db=1"},
    {"unix://:p%40w@/r", "/r", 0, 0, "-", "p@w", "unix:/r"},
    {"/run/redis%20.sock", "/run/redis%20.sock", 0, 0, "-", "-", "unix:/run/redis%20.sock"},
};
#define ACCEPTED_COUNT (sizeof ACCEPTED / sizeof ACCEPTED[0])

START_TEST(accepted_and_normalised)
{
    const struct accepted *expected = &ACCEPTED[_i];
    struct list list = empty_list();

    ck_assert_msg(parse(&list, expected->text) == 0, "%s: %s", expected->text, list.error);
    ck_assert_uint_eq(list.count, 1);
    const struct rl_node_spec *spec = &list.nodes[0];
    ck_assert_int_eq(spec->is_unix, expected->port == 0);
    ck_assert_str_eq(spec->is_unix ? spec->path : spec->host, expected->host);
    ck_assert_str_eq(spec->is_unix ? spec->host : spec->path, "");
    ck_assert_uint_eq(spec->port, expected->port);
    ck_assert_uint_eq(spec->db, expected->db);
    ck_assert_str_eq(text_or_dash(spec->user), expected->user);
    ck_assert_str_eq(text_or_dash(spec->password), expected->password);
    ck_assert_str_eq(spec->name, expected->name);
    ck_assert_str_eq(list.error, "");
    done(&list);
}
END_TEST

/* The name of a server in messages is an accepted address. */
START_TEST(names_are_accepted_as_addresses)
{
    struct list list = empty_list();
    struct list again = empty_list();
    ck_assert_int_eq(parse(&list, ACCEPTED[_i].text), 0);
    if (strpbrk(list.nodes[0].name, " ,%@") == NULL || !list.nodes[0].is_unix) {
        ck_assert_msg(parse(&again, list.nodes[0].name) == 0, "%s", again.error);
        ck_assert_str_eq(again.nodes[0].name, list.nodes[0].name);
    }
    done(&list);
    done(&again);
}
END_TEST

START_TEST(lists_are_separated_by_commas_and_blanks)
{
    static const char *const texts[] = {"a,b,c", "a b c", " a , b\tc\n", ",,a,,b\r\nc,",
                                        "redis://a:6379/0,b:6379 valkey://c"};
    struct list list = empty_list();
    ck_assert_int_eq(parse(&list, texts[_i]), 0);
    ck_assert_uint_eq(list.count, 3);
    ck_assert_str_eq(list.nodes[0].name, "a:6379");
    ck_assert_str_eq(list.nodes[1].name, "b:6379");
    ck_assert_str_eq(list.nodes[2].name, "c:6379");
    done(&list);
}
END_TEST

/* ---- what is refused ---- */

struct refused {
    const char *text;
    const char *says; /* part of the error */
};

static const struct refused REFUSED[] = {
    {"", "no server address given; name at least one, as redis://host:6379"},
    {" , ,", "no server address given"},
    {"h:0", "server address 1 (h:0): the port after ':' must be a number from 1 to 65535"},
    {"h:65536", "from 1 to 65535"},
    {"h:", "from 1 to 65535"},
    {"h:-1", "from 1 to 65535"},
    {"h: 1", "from 1 to 65535"},
    {"h:99999999999999999999999", "from 1 to 65535"},
    {"h:18446744073709551617", "from 1 to 65535"}, /* 2^64 + 1 */
    {"h:0x10", "from 1 to 65535"},
    {":6379", "the host before ':' is missing"},
    {":", "the host before ':' is missing"},
    {"::1", "an IPv6 address needs brackets"},
    {"fe80::1:6379", "an IPv6 address needs brackets"},
    {"[::1", "the ']' after the IPv6 address is missing"},
    {"[::1]7000", "after the ']' only ':' and a port may follow"},
    {"[]", "not an IPv6 address"},
    {"[::g]", "not an IPv6 address"},
    {"[127.0.0.1]", "not an IPv6 address"},
    {"[1:2:3:4:5:6:7:8:9:0:1:2:3:4:5:6:7:8:9:0:1:2:3]", "not an IPv6 address"},
    {"[fe80::1%a b]", "the ']' after the IPv6 address is missing"}, /* torn by the blank */
    {"[fe80::1%a%b]", "the zone after '%' must be the name of a network interface"},
    {"ho$t", "a host name consists of letters, digits, '.', '-' and '_' only"},
    {"h%6Fst", "a host name consists of"},
    {"h\xc3\xb6st", "a host name consists of"},
    {"redis://h:1/x", "the database must be a number from 0 to 2147483647"},
    {"redis://h/-1", "the database must be a number"},
    {"redis://h/2147483648", "the database must be a number"},
    {"redis://h/18446744073709551616", "the database must be a number"}, /* 2^64 */
    {"redis://h/1/2", "the database must be a number"},
    {"run/redis.sock", "the database must be a number"},
    {"redis://h?db=3", "a database is written as /N"},
    {"redis://h/3?timeout=5",
     "after the '?' only these parameters are known: durable=1, fresh=1, id=NAME"},
    {"redis://h#x", "'#' has no meaning"},
    {"redis+sentinel://h", "Sentinel is not supported; list the servers themselves"},
    {"http://h", "unknown scheme; use redis://, rediss://, valkey://, valkeys:// or unix://"},
    {"redis://h?cacert=/c", "parameters of TLS need an address that begins with rediss://"},
    {"redis+tls://h", "unknown scheme"},
    {"redis:/h", "from 1 to 65535"},
    {"redis://ada@h", "write user:password@host or :password@host"},
    {"redis://@h", "write user:password@host"},
    {"redis://ada:@h", "the password is empty"},
    {"redis://:@h", "the password is empty"},
    {"redis://ada:p@w@h", "there is more than one '@'; in a password, write it as %40"},
    {"redis://ada:p/w@h", "there is an '@' after the host; in a password, write '/' as %2F"},
    {"redis://ada:p?w@h", "there is an '@' after the host"},
    {"redis://ada:p#w@h", "there is an '@' after the host"},
    {"ada:pw@h", "an entry has an '@' but no known scheme; write redis://user:password@host"},
    {"redis://ada:p,w@h", "in a password ',' as %2C and a blank as %20"},
    {"redis://ada:p w@h", "in a password ',' as %2C and a blank as %20"},
    {"redis://a%:p@h", "'%' in the user is not followed by two hex digits"},
    {"redis://a:p%@h", "'%' in the password is not followed by two hex digits; write a literal"},
    {"redis://a:p%2@h", "not followed by two hex digits"},
    {"redis://a:p%2g@h", "not followed by two hex digits"},
    {"redis://a:p%00@h", "the password contains a control byte"},
    {"redis://a:p%1f@h", "the password contains a control byte"},
    {"redis://a:p%7F@h", "the password contains a control byte"},
    {"redis://a%20b:p@h", "the user contains a blank"},
    {"redis://a%0a:p@h", "the user contains a control byte"},
    {"unix:///a%00b", "the path of the socket contains a control byte"},
    {"unix://run/r", "a unix address needs an absolute path, as in unix:///run/redis.sock"},
    {"unix://", "needs an absolute path"},
    {"unix://ada@/r", "write user:password@host"},
    {"unix://a:b@c:d@/r", "there is more than one '@'"},
    {"unix:///a@b", "there is an '@' in the path; write it as %40"},
    {"/a@b", "in the path of a socket '@' as unix:///a%40b"},
    {"unix:///r?db=", "the database must be a number"},
    {"unix:///r?db", "the database must be a number"},
    {"h?id=", "only these parameters are known"},
    {"h?id", "only these parameters are known"},
    {"h?id=a%20b", "the id contains a blank"},
    {"h?id=aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggg",
     "the id is longer than 64 bytes"},
    {"h?id=a,g?id=b,i?id=a", "server 1 has the same id"},
    {"h?durable=yes", "durable and fresh must be 1 or 0"},
    {"h?fresh", "durable and fresh must be 1 or 0"},
    {"h?durable=1&waitaof=1",
     "after the '?' only these parameters are known: durable=1, fresh=1, id=NAME"},
    {"unix:///r?password=x", "only these parameters are known: durable=1, fresh=1, id=NAME, db=N"},
    {"unix:///r?db=1&x=2", "only these parameters are known"},
    {"/r?db=1", "a bare path takes no parameters; write unix:///path?db=N"},
    {"h\x01", "server address 1 (h***): it contains a control byte"},
    {"\x7f", "it contains a control byte"},
    {"a,b,a", "server address 3 (a): same server as number 1 (a:6379)"},
    {"a,A:6379", "same server as number 1"},
    {"a/1,a/2", "another database is not another server"},
    {"[::1],[0:0::1]:6379", "same server as number 1 ([::1]:6379)"},
    {"unix:///r,/r", "same server as number 1 (unix:/r)"},
    {"redis://x:p@a,redis://y:q@a",
     "server address 2 (redis://***@a): same server as number 1 (a:6379)"},
};
#define REFUSED_COUNT (sizeof REFUSED / sizeof REFUSED[0])

START_TEST(refused_with_a_reason)
{
    struct list list = empty_list();
    ck_assert_int_eq(parse(&list, REFUSED[_i].text), REDLOCK_EINVAL);
    ck_assert_uint_eq(list.count, 0);
    ck_assert_msg(strstr(list.error, REFUSED[_i].says) != NULL, "\"%s\" gives \"%s\", not \"%s\"",
                  REFUSED[_i].text, list.error, REFUSED[_i].says);
    done(&list);
}
END_TEST

/* Each length limit: the longest that fits, and one more. */
START_TEST(every_part_has_a_length_limit)
{
    static const struct {
        const char *head, *tail;
        size_t max;
        const char *says;
    } cases[] = {
        {"", "", RL_HOST_MAX, "the host name is longer than 255 bytes"},
        {"/", "", RL_PATH_MAX - 1, "the path of the socket is longer than 107 bytes"},
        {"unix:///", "", RL_PATH_MAX - 1, "the path of the socket is longer than 107 bytes"},
        {"redis://", ":p@h", RL_USER_MAX, "the user is longer than 256 bytes"},
        {"redis://:", "@h", RL_PASSWORD_MAX, "the password is longer than 4096 bytes"},
        {"[fe80::1%", "]", RL_HOST_MAX - 8, "the zone after '%' must be"},
    };
    char text[RL_PASSWORD_MAX + 64];
    for (size_t more = 0; more < 2; more++) {
        struct list list = empty_list();
        size_t len = strlen(cases[_i].head);
        memcpy(text, cases[_i].head, len);
        memset(text + len, 'x', cases[_i].max + more);
        strcpy(text + len + cases[_i].max + more, cases[_i].tail);
        ck_assert_int_eq(parse(&list, text), more == 0 ? 0 : REDLOCK_EINVAL);
        if (more == 1)
            ck_assert_msg(strstr(list.error, cases[_i].says) != NULL, "%s", list.error);
        done(&list);
    }
}
END_TEST

START_TEST(the_number_of_servers_is_limited)
{
    char text[RL_NODES_MAX * 8 + 16] = "";
    struct list list = empty_list();
    for (unsigned i = 0; i < RL_NODES_MAX; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "h%u ", i);
    ck_assert_int_eq(parse(&list, text), 0);
    ck_assert_uint_eq(list.count, RL_NODES_MAX);
    ck_assert_int_eq(parse(&list, "one-more"), REDLOCK_EINVAL);
    ck_assert_ptr_nonnull(strstr(list.error, "more than 31 servers"));
    ck_assert_uint_eq(list.count, RL_NODES_MAX);
    done(&list);
}
END_TEST

START_TEST(attested_properties_are_parsed)
{
    static const struct {
        const char *text;
        bool durable, fresh;
    } table[] = {
        {"h", false, false},
        {"h?durable=1", true, false},
        {"h?fresh=1&durable=0", false, true},
        {"redis://h:1/2?fresh=1&durable=1", true, true},
        {"unix:///s?db=3&durable=1", true, false},
        {"h?durable=1&durable=0", false, false},
    };
    struct list list = empty_list();

    ck_assert_int_eq(parse(&list, table[_i].text), 0);
    ck_assert(list.nodes[0].durable == table[_i].durable);
    ck_assert(list.nodes[0].fresh == table[_i].fresh);
    done(&list);
}
END_TEST

/* Clients that reach a server under different addresses call it by the same name. */
START_TEST(names_without_addresses_are_the_same_for_all_clients)
{
    static const struct {
        const char *text, *id;
    } table[] = {
        {"h", "h:6379"},
        {"h?id=a", "a"},
        {"redis://h:1/2?fresh=1&id=tie.1", "tie.1"},
        {"unix:///s?db=3&id=a%2fb", "a/b"},
        {"h?id=b&id=c", "c"},
    };
    struct list list = empty_list();

    ck_assert_int_eq(parse(&list, table[_i].text), 0);
    ck_assert_str_eq(rl_node_spec_id(&list.nodes[0]), table[_i].id);
    done(&list);
}
END_TEST

START_TEST(an_invalid_list_adds_nothing)
{
    struct list list = empty_list();
    ck_assert_int_eq(parse(&list, "redis://u:p@a,b"), 0);
    ck_assert_int_eq(parse(&list, "redis://u:p@c,redis://u:p@d:0"), REDLOCK_EINVAL);
    ck_assert_uint_eq(list.count, 2);
    ck_assert_int_eq(parse(&list, "c,b"), REDLOCK_EINVAL); /* b was added by the first call */
    ck_assert_ptr_nonnull(
        strstr(list.error, "server address 2 (b): same server as number 2 (b:6379)"));
    ck_assert_uint_eq(list.count, 2);
    ck_assert_int_eq(parse(&list, "c"), 0);
    ck_assert_str_eq(list.nodes[2].name, "c:6379");
    ck_assert_str_eq(list.nodes[0].password, "p");
    done(&list);
}
END_TEST

/* ---- memory ---- */

START_TEST(out_of_memory_at_every_allocation)
{
    int allocations = 0;
    for (bool failed = true; failed; allocations++) {
        struct heap heap = {.left = allocations};
        struct list list = empty_list();
        list.mem = (struct rl_mem){heap_malloc, heap_realloc, heap_free, &heap};
        int rc = parse(&list, "redis://u:QQQQ@a redis://QQQQ:QQQQ@b /c");
        failed = rc != 0;
        if (failed) {
            ck_assert_int_eq(rc, REDLOCK_ENOMEM);
            ck_assert_uint_eq(list.count, 0);
            ck_assert_ptr_nonnull(strstr(list.error, "out of memory"));
        }
        done(&list);
        ck_assert_int_eq(heap.live, 0);
        ck_assert(!heap.has_secrets);
    }
    ck_assert_int_eq(allocations, 8); /* 3 entries, 2 users, 2 passwords; then none failed */
}
END_TEST

START_TEST(specs_are_copied_deeply)
{
    for (int left = 0; left < 3; left++) {
        struct heap heap = {.left = left};
        struct rl_mem mem = {heap_malloc, heap_realloc, heap_free, &heap};
        struct list list = empty_list();
        struct rl_node_spec copy;
        ck_assert_int_eq(parse(&list, "redis://QQ:QQQQ@h:1/2"), 0);
        int rc = rl_node_spec_copy(&mem, &copy, &list.nodes[0]);
        ck_assert_int_eq(rc, left < 2 ? REDLOCK_ENOMEM : 0);
        if (rc == 0) {
            ck_assert_str_eq(copy.name, "h:1/2");
            ck_assert_str_eq(copy.user, "QQ");
            ck_assert_ptr_ne(copy.user, list.nodes[0].user);
            ck_assert_str_eq(copy.password, "QQQQ");
            ck_assert_ptr_ne(copy.password, list.nodes[0].password);
            rl_node_spec_done(&mem, &copy);
        }
        ck_assert_ptr_null(copy.user);
        ck_assert_ptr_null(copy.password);
        rl_node_spec_done(&mem, &copy); /* done twice is harmless */
        ck_assert_int_eq(heap.live, 0);
        ck_assert(!heap.has_secrets);
        done(&list);
    }
}
END_TEST

/* ---- TLS ---- */

enum { FULL = RL_TLS_VERIFY_FULL, CHAIN = RL_TLS_VERIFY_CHAIN, NONE = RL_TLS_VERIFY_NONE };

/* Addresses with TLS, and the settings in them; NULL: none. */
static const struct {
    const char *text, *cacert, *cert, *key, *sni;
    int verify;
    bool has_verify;
} TLS[] = {
    {"rediss://h", NULL, NULL, NULL, NULL, FULL, false},
    {"ValkeyS://h:1/2?durable=1", NULL, NULL, NULL, NULL, FULL, false},
    {"rediss://:p@h?cacert=/a%20b", "/a b", NULL, NULL, NULL, FULL, false},
    {"rediss://h?cert=c&id=x&key=k", NULL, "c", "k", NULL, FULL, false},
    {"rediss://h?cert=c&sni=a.b", NULL, "c", NULL, "a.b", FULL, false},
    {"rediss://h?sni=a_b.1c.", NULL, NULL, NULL, "a_b.1c.", FULL, false},
    {"rediss://h?sni=10.0.0.255", NULL, NULL, NULL, "10.0.0.255", FULL, false},
    {"rediss://h?sni=::ffff:1.2.3.4", NULL, NULL, NULL, "::ffff:1.2.3.4", FULL, false},
    {"rediss://h?verify=full", NULL, NULL, NULL, NULL, FULL, true},
    {"rediss://h?VERIFY=chain&cacert=c", "c", NULL, NULL, NULL, CHAIN, true},
    {"rediss://h?verify=none", NULL, NULL, NULL, NULL, NONE, true},
};

START_TEST(tls_settings_are_read)
{
    struct list list = empty_list();

    ck_assert_int_eq(parse(&list, TLS[_i].text), REDLOCK_OK);
    const struct rl_node_spec *spec = &list.nodes[0];
    ck_assert(spec->tls);
    ck_assert_int_eq(spec->has_verify, TLS[_i].has_verify);
    ck_assert_pstr_eq(spec->tls_settings.cacert, TLS[_i].cacert);
    ck_assert_pstr_eq(spec->tls_settings.cert, TLS[_i].cert);
    ck_assert_pstr_eq(spec->tls_settings.key, TLS[_i].key);
    ck_assert_pstr_eq(spec->tls_settings.sni, TLS[_i].sni);
    ck_assert_int_eq(spec->tls_settings.verify, TLS[_i].verify);
    done(&list);
}
END_TEST

/* Settings of TLS, as constants. */
struct constants {
    const char *cacert, *cert, *key, *sni;
    uint8_t verify;
};

/* Addresses, common settings, and what a node has of both. */
static const struct {
    const char *text;
    struct constants common, all;
} COMPLETED[] = {
    {"rediss://h", {"/ca", "/c", "/k", "n", CHAIN}, {"/ca", "/c", "/k", "n", CHAIN}},
    {"rediss://h", {.verify = NONE}, {.verify = NONE}},
    {"rediss://h?sni=own", {"/ca", "/c", "/k", "n", CHAIN}, {"/ca", "/c", "/k", "own", CHAIN}},
    {"rediss://h?cert=own", {"/ca", "/c", "/k", "n", FULL}, {"/ca", "own", NULL, "n", FULL}},
    {"rediss://h?cacert=own", {"/ca", "/c", NULL, NULL, CHAIN}, {"own", "/c", NULL, NULL, FULL}},
    {"rediss://h?cacert=own", {.verify = NONE}, {.cacert = "own", .verify = FULL}},
    {"rediss://h?verify=full", {"/ca", NULL, NULL, "n", CHAIN}, {"/ca", NULL, NULL, "n", FULL}},
    {"rediss://h?verify=full", {.verify = NONE}, {.verify = FULL}},
    {"rediss://h?verify=none", {"/ca", "/c", "/k", "n", FULL}, {NULL, "/c", "/k", "n", NONE}},
    {"rediss://h?verify=chain",
     {"/ca", NULL, NULL, NULL, FULL},
     {.cacert = "/ca", .verify = CHAIN}},
    {"rediss://h?verify=chain&cacert=own",
     {"/ca", NULL, NULL, NULL, FULL},
     {.cacert = "own", .verify = CHAIN}},
};

/* What an address does not say comes from the common settings; a second time changes nothing. */
START_TEST(tls_settings_are_completed)
{
    struct list list = empty_list();
    const struct constants *all = &COMPLETED[_i].all, *given = &COMPLETED[_i].common;
    const struct rl_tls_settings common = {.cacert = (char *)(uintptr_t)given->cacert,
                                           .cert = (char *)(uintptr_t)given->cert,
                                           .key = (char *)(uintptr_t)given->key,
                                           .sni = (char *)(uintptr_t)given->sni,
                                           .verify = given->verify};

    ck_assert_int_eq(parse(&list, COMPLETED[_i].text), REDLOCK_OK);
    for (int round = 0; round < 2; round++) {
        const struct rl_tls_settings *settings = &list.nodes[0].tls_settings;
        ck_assert_int_eq(rl_tls_settings_complete(&list.mem, &list.nodes[0], &common), REDLOCK_OK);
        ck_assert_pstr_eq(settings->cacert, all->cacert);
        ck_assert_pstr_eq(settings->cert, all->cert);
        ck_assert_pstr_eq(settings->key, all->key);
        ck_assert_pstr_eq(settings->sni, all->sni);
        ck_assert_int_eq(settings->verify, all->verify);
        ck_assert_ptr_null(rl_tls_settings_flaw(settings));
    }
    done(&list);
}
END_TEST

/* Refused addresses with TLS, and what the text contains. */
static const struct {
    const char *text, *words;
} TLS_REFUSED[] = {
    {"rediss://h?cacert=", "cacert must be given once, and not be empty"},
    {"rediss://h?cert=a&cert=b", "cert must be given once"},
    {"rediss://h?verify=maybe", "verify must be full, chain or none"},
    {"rediss://h?verify=", "verify must be full, chain or none"},
    {"rediss://h?verify=None", "verify must be full, chain or none"},
    {"rediss://h?verify=NONE", "verify must be full, chain or none"},
    {"rediss://h?verify=nonee", "verify must be full, chain or none"},
    {"rediss://h?verify=%6eone", "verify must be full, chain or none"},
    {"rediss://h?cacert=c&verify=Chain", "verify must be full, chain or none"},
    {"rediss://h?verify=full&verify=none", "verify must be given once"},
    {"rediss://h?verify=none&cacert=/c", "cacert has no effect with verify=none"},
    {"rediss://h?key=/k", "key is given without cert"},
    {"rediss://h?sni=a/b", "sni must be a host name or an IP address"},
    {"rediss://h?sni=.example.com", "sni must be a host name or an IP address"},
    {"rediss://h?sni=a.test:6379", "sni must be a host name or an IP address, without a port"},
    {"rediss://h?sni=127.0.0.1:6379", "without a port"},
    {"rediss://h?sni=:1:2", "without a port"},
    {"rediss://h?sni=[::1]", "without brackets"},
    {"rediss://h?sni=[::1]:6379", "without brackets and without a port"},
    {"rediss://h?sni=256.1.1.1", "an IPv4 address has four numbers from 0 to 255"},
    {"rediss://h?sni=1.2.3", "an IPv4 address has four numbers"},
    {"rediss://h?sni=1.2.3.4.", "an IPv4 address has four numbers"},
    {"rediss://h?sni=1.2.3.4.5", "an IPv4 address has four numbers"},
    {"rediss://h?sni=a.1", "an IPv4 address has four numbers"},
    {"rediss://h?sni=12", "an IPv4 address has four numbers"},
    {"rediss:///run/redis.sock", "TLS on a unix socket is not supported; write rediss://host, or"},
    {"rediss:///999999999999", "the database must be a number"},
    {"rediss://.example.com", "a host name must not begin with a '.'"},
    {"rediss://h?foo=1", "id=NAME, cacert=PATH, cert=PATH, key=PATH, sni=NAME, verify=full"},
};

START_TEST(wrong_tls_settings_are_refused)
{
    struct list list = empty_list();

    ck_assert_int_eq(parse(&list, TLS_REFUSED[_i].text), REDLOCK_EINVAL);
    const char *words = rl_node_spec_tls_is_built() ? TLS_REFUSED[_i].words : "built without TLS";
    ck_assert_msg(strstr(list.error, words) != NULL, "%s: %s", TLS_REFUSED[_i].text, list.error);
    done(&list);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api_url");
    TCase *tcase = tcase_create("url");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, accepted_and_normalised, 0, (int)ACCEPTED_COUNT);
    tcase_add_loop_test(tcase, names_are_accepted_as_addresses, 0, (int)ACCEPTED_COUNT);
    tcase_add_loop_test(tcase, lists_are_separated_by_commas_and_blanks, 0, 5);
    tcase_add_loop_test(tcase, refused_with_a_reason, 0, (int)REFUSED_COUNT);
    if (rl_node_spec_tls_is_built()) {
        tcase_add_loop_test(tcase, tls_settings_are_read, 0, (int)(sizeof TLS / sizeof TLS[0]));
        tcase_add_loop_test(tcase, tls_settings_are_completed, 0,
                            (int)(sizeof COMPLETED / sizeof COMPLETED[0]));
    }
    tcase_add_loop_test(tcase, wrong_tls_settings_are_refused, 0,
                        (int)(sizeof TLS_REFUSED / sizeof TLS_REFUSED[0]));
    tcase_add_loop_test(tcase, every_part_has_a_length_limit, 0, 6);
    tcase_add_test(tcase, the_number_of_servers_is_limited);
    tcase_add_loop_test(tcase, attested_properties_are_parsed, 0, 6);
    tcase_add_loop_test(tcase, names_without_addresses_are_the_same_for_all_clients, 0, 5);
    tcase_add_test(tcase, an_invalid_list_adds_nothing);
    tcase_add_test(tcase, out_of_memory_at_every_allocation);
    tcase_add_test(tcase, specs_are_copied_deeply);
    return suite_run(suite);
}
