/* SPDX-License-Identifier: MIT
 * A host name with many addresses, of which only one leads to a server: the client tries all of
 * them, however many there are. The test replaces getaddrinfo() for that name.
 *
 * Uses fake_redis.h: a fake Redis server on a thread of this process. The server executes
 * commands, logs them, and misbehaves where a rule (fake_redis_rule()) says so. */
#include "fake_redis.h"
#include "fake_tls.h"
#include "suite.h"
#include "wait.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <redlock/redlock.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define NAME          "many.test"
#define TIME_LIMIT_MS 20000
#define TTL_MS        30000

/* ---- the name server of this test ---- */

struct answer {
    struct addrinfo info;
    struct sockaddr_in address;
};

static struct {
    unsigned addresses;   /* 127.0.1.1, 127.0.1.2, ...: no server listens there */
    unsigned right;       /* index of the address that is 127.0.0.1 instead */
    bool rotates;         /* each list begins one address after the last one's beginning */
    atomic_uint requests; /* calls of getaddrinfo() for NAME */
} server;

/* Returns the next list of addresses for NAME. */
static struct addrinfo *make_list(uint16_t port)
{
    unsigned first = atomic_fetch_add(&server.requests, 1);
    struct addrinfo *list = NULL;

    for (unsigned i = server.addresses; i-- > 0;) {
        unsigned number = (i + (server.rotates ? first : 0)) % server.addresses;
        struct answer *answer = calloc(1, sizeof *answer);
        if (answer == NULL)
            abort();
        answer->address.sin_family = AF_INET;
        answer->address.sin_port = htons(port);
        answer->address.sin_addr.s_addr =
            htonl(number == server.right ? INADDR_LOOPBACK : 0x7f000101 + number);
        answer->info.ai_family = AF_INET;
        answer->info.ai_flags = -1; /* marks a list of make_list() */
        answer->info.ai_addrlen = sizeof answer->address;
        answer->info.ai_addr = (struct sockaddr *)&answer->address;
        answer->info.ai_next = list;
        list = &answer->info;
    }
    return list;
}

/* Replaces the function of libc, for NAME only. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(node, NAME) != 0 || (hints->ai_flags & AI_NUMERICHOST) != 0)
        return real(node, service, hints, ret);
    *ret = make_list((uint16_t)strtoul(service, NULL, 10));
    return 0;
}

/* Replaces the function of libc, for lists of both kinds. */
void freeaddrinfo(struct addrinfo *list)
{
    if (list->ai_flags != -1) {
        void (*real)(struct addrinfo *);
        *(void **)&real = dlsym(RTLD_NEXT, "freeaddrinfo");
        real(list);
        return;
    }
    while (list != NULL) {
        struct addrinfo *next = list->ai_next;
        free(list);
        list = next;
    }
}

/* ---- the cases ---- */

static const struct {
    unsigned addresses, right;
    bool rotates;
} CASES[] = {{1, 0, false},   {8, 7, false},  {9, 8, false},  {16, 15, false},
             {17, 16, false}, {20, 11, true}, {20, 19, false}};

/* Returns a client of the server under NAME. A certificate of the servers is for localhost. */
static redlock_t *connect_to(const struct fake_redis *fake)
{
    const char *port = strrchr(fake_redis_url(fake), ':');
    redlock_config_t *config = NULL;
    redlock_t *client = NULL;
    char url[128];

    const bool tls = fake_tls_is_wanted();
    snprintf(url, sizeof url, "%s://" NAME "%.*s?fresh=1%s", tls ? "rediss" : "redis",
             (int)strcspn(port, "/?"), port, tls ? "&sni=localhost" : "");
    ck_assert_int_eq(redlock_config_new(&config, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_add_nodes(config, url), REDLOCK_OK);
    ck_assert_int_eq(redlock_new(&client, config), REDLOCK_OK);
    redlock_config_free(config);
    return client;
}

START_TEST(all_addresses_are_tried)
{
    struct fake_redis *fake = fake_redis_start(NULL);
    const redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_lock_t *lock = NULL;

    server.addresses = CASES[_i].addresses;
    server.right = CASES[_i].right;
    server.rotates = CASES[_i].rotates;
    redlock_t *client = connect_to(fake);
    ck_assert_int_eq(redlock_wait_ready(client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    /* A lost connection is established again, although the first addresses have no server. */
    fake_redis_drop_connections(fake);
    ck_assert(fake_redis_wait_connections(fake, 1, TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_wait_ready(client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    ck_assert_int_eq(redlock_acquire(client, "resource", &opts, &lock, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_release(lock, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
    redlock_free(client);
    fake_redis_stop(fake);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("io_many_addresses");
    TCase *tcase = tcase_create("many_addresses");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, all_addresses_are_tried, 0, (int)(sizeof CASES / sizeof CASES[0]));
    return suite_run(suite);
}
