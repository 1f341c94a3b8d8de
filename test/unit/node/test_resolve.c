/* SPDX-License-Identifier: MIT
 * Name resolution: numeric addresses at once, names on a thread that may outlive its node. The test
 * replaces getaddrinfo() for names, to delay it and to choose its result. */
#include "node/resolve.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fdcheck.h"
#include "suite.h"
#include "wait.h"

#define DEADLINE_MS 10000

/* ---- the name server of this test ---- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool held;         /* results are held back */
    unsigned requests; /* calls of getaddrinfo() for a name */
    unsigned finished; /* lists that were freed, and failures */
    int error;         /* EAI_*; 0: addresses */
    unsigned addresses;
    bool saw_signals; /* a call came on a thread that does not block all signals */
} server = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Returns true if the calling thread blocks all signals that can be blocked. */
static bool all_signals_blocked(void)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number < 32; number++)
        if (number != SIGKILL && number != SIGSTOP && sigismember(&mask, number) != 1)
            return false;
    return true;
}

/* One address of a list of make_list(). */
struct result {
    struct addrinfo info;
    struct sockaddr_in6 address;
};

/* Returns a list of 10.0.0.1, 2001:db8::2, 10.0.0.3 and so on, the two families in turn, after one
 * unusable entry of the family AF_UNIX. */
static struct addrinfo *make_list(unsigned count, uint16_t port)
{
    struct addrinfo *list = NULL;
    for (unsigned i = count + 1; i-- > 0;) {
        struct result *result = calloc(1, sizeof *result);
        if (result == NULL)
            abort();
        struct sockaddr_in *v4 = (struct sockaddr_in *)&result->address;
        if (i == 0) {
            result->info.ai_family = AF_UNIX;
        } else if (i % 2 == 1) {
            v4->sin_family = AF_INET;
            v4->sin_port = htons(port);
            v4->sin_addr.s_addr = htonl(0x0a000000 + i);
            result->info.ai_family = AF_INET;
            result->info.ai_addrlen = sizeof *v4;
        } else {
            result->address.sin6_family = AF_INET6;
            result->address.sin6_port = htons(port);
            inet_pton(AF_INET6, "2001:db8::", &result->address.sin6_addr);
            result->address.sin6_addr.s6_addr[14] = (uint8_t)(i >> 8);
            result->address.sin6_addr.s6_addr[15] = (uint8_t)i;
            result->info.ai_family = AF_INET6;
            result->info.ai_addrlen = sizeof result->address;
        }
        result->info.ai_addr = (struct sockaddr *)&result->address;
        result->info.ai_next = list;
        list = &result->info;
    }
    return list;
}

/* Returns true if the list is from make_list(). */
static bool is_test_list(const struct addrinfo *list)
{
    return list->ai_family == AF_UNIX;
}

/* Replaces the function of libc: numeric addresses go there, names get this test's results. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    if ((hints->ai_flags & AI_NUMERICHOST) != 0) {
        int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
        return real(node, service, hints, ret);
    }
    pthread_mutex_lock(&server.mutex);
    server.requests++;
    if (!all_signals_blocked())
        server.saw_signals = true;
    pthread_cond_broadcast(&server.changed);
    while (server.held)
        pthread_cond_wait(&server.changed, &server.mutex);
    int error = server.error;
    if (error == 0)
        *ret = make_list(server.addresses, (uint16_t)strtoul(service, NULL, 10));
    else
        server.finished++;
    pthread_mutex_unlock(&server.mutex);
    errno = EMFILE;
    return error;
}

/* Replaces the function of libc, for lists of both kinds. */
void freeaddrinfo(struct addrinfo *list)
{
    if (!is_test_list(list)) {
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
    pthread_mutex_lock(&server.mutex);
    server.finished++;
    pthread_mutex_unlock(&server.mutex);
}

/* Holds results back, or lets them go. */
static void hold_results(bool held)
{
    pthread_mutex_lock(&server.mutex);
    server.held = held;
    pthread_cond_broadcast(&server.changed);
    pthread_mutex_unlock(&server.mutex);
}

/* Waits for so many calls of getaddrinfo(). */
static void wait_for_requests(unsigned count)
{
    pthread_mutex_lock(&server.mutex);
    while (server.requests < count)
        pthread_cond_wait(&server.changed, &server.mutex);
    pthread_mutex_unlock(&server.mutex);
}

/* Returns how many lookups have ended. */
static unsigned count_finished(void)
{
    pthread_mutex_lock(&server.mutex);
    unsigned count = server.finished;
    pthread_mutex_unlock(&server.mutex);
    return count;
}

static int wake_fd;
static unsigned started, first_address;
static size_t open_before; /* descriptors when the case began */

/* Starts a lookup and counts it, so that teardown() can wait for its thread. */
static struct rl_lookup *start(const char *host, uint16_t port)
{
    struct rl_lookup *lookup = rl_lookup_start(host, port, first_address, wake_fd);
    ck_assert_ptr_nonnull(lookup);
    started++;
    return lookup;
}

/* Fixture: resets the replaced resolver, which then finds two addresses at once, and opens the
 * descriptor that a finished resolution wakes. */
static void setup(void)
{
    open_before = fdcheck_count();
    wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    server.held = server.saw_signals = false;
    server.requests = server.finished = started = first_address = 0;
    server.error = 0;
    server.addresses = 2;
}

/* Fixture: waits until every thread of the case has replied and closed its descriptor.
 * Otherwise the next case would count descriptors, or prepare the server, while a thread still
 * ends. Checks that all these threads had all signals blocked. */
static void teardown(void)
{
    if (wake_fd >= 0)
        close(wake_fd);
    ck_assert(WAIT_UNTIL(count_finished() == started, DEADLINE_MS));
    ck_assert(WAIT_UNTIL(fdcheck_count() == open_before, DEADLINE_MS));
    ck_assert(!server.saw_signals);
}

/* Waits for a wake-up on the eventfd. */
static bool is_woken(int timeout_ms)
{
    struct pollfd fd = {.fd = wake_fd, .events = POLLIN};
    return poll(&fd, 1, timeout_ms) == 1;
}

/* Checks that address `i` is this one. */
static void check_address(const struct rl_addresses *addresses, unsigned i, const char *host,
                          unsigned port)
{
    char text[128], service[16];
    ck_assert_uint_lt(i, addresses->count);
    ck_assert_int_eq(getnameinfo((const struct sockaddr *)&addresses->list[i], addresses->len[i],
                                 text, sizeof text, service, sizeof service,
                                 NI_NUMERICHOST | NI_NUMERICSERV),
                     0);
    ck_assert_str_eq(text, host);
    ck_assert_uint_eq(strtoul(service, NULL, 10), port);
}

/* Returns the number of address `i` in the list of make_list(), from 1 on. */
static unsigned address_number(const struct rl_addresses *addresses, unsigned i)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&addresses->list[i];
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&addresses->list[i];

    if (v4->sin_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) & 0xffff;
    return v6->sin6_addr.s6_addr[14] * 256u + v6->sin6_addr.s6_addr[15];
}

/* ---- numbers ---- */

START_TEST(numeric_addresses_need_no_lookup)
{
    static const struct {
        const char *host, *text;
    } cases[] = {{"127.0.0.1", "127.0.0.1"},
                 {"255.255.255.255", "255.255.255.255"},
                 {"::1", "::1"},
                 {"2001:db8::ffff", "2001:db8::ffff"},
                 {"fe80::1%lo", "fe80::1%lo"}};
    struct rl_addresses addresses;
    ck_assert_int_eq(rl_resolve_numeric(cases[_i].host, 6379, &addresses), 1);
    ck_assert_uint_eq(addresses.count, 1);
    check_address(&addresses, 0, cases[_i].text, 6379);
    ck_assert_int_eq(rl_resolve_numeric(cases[_i].host, 65535, &addresses), 1);
    check_address(&addresses, 0, cases[_i].text, 65535);
}
END_TEST

START_TEST(names_need_a_lookup)
{
    static const char *const names[] = {
        "localhost", "h", "", "256.1.1.1", "::1::", "[::1]", "fe80::1%no-such-interface", "a b"};
    struct rl_addresses addresses = {.count = 77};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert_int_eq(rl_resolve_numeric(names[i], 6379, &addresses), 0);
    ck_assert_uint_eq(addresses.count, 77); /* unchanged */
}
END_TEST

/* ---- lookups ---- */

START_TEST(lookup_runs_beside_the_caller)
{
    struct rl_addresses addresses = {.count = 77};
    hold_results(true);
    struct rl_lookup *lookup = start("h", 7000);
    wait_for_requests(1);
    ck_assert_int_eq(rl_lookup_poll(lookup, &addresses), 0);
    ck_assert_uint_eq(addresses.count, 77);
    ck_assert(!is_woken(0));

    hold_results(false);
    ck_assert(is_woken(DEADLINE_MS));
    ck_assert_int_eq(rl_lookup_poll(lookup, &addresses), 1);
    ck_assert_uint_eq(addresses.count, 2); /* both families, in the order given */
    check_address(&addresses, 0, "10.0.0.1", 7000);
    check_address(&addresses, 1, "2001:db8::2", 7000);
    ck_assert_int_eq(rl_lookup_poll(lookup, &addresses), 1); /* again */
    rl_lookup_drop(lookup);
}
END_TEST

START_TEST(the_number_of_addresses_is_limited)
{
    struct rl_addresses addresses;
    server.addresses = 3 * RL_ADDRESSES_MAX;
    struct rl_lookup *lookup = start("h", 1);
    ck_assert(is_woken(DEADLINE_MS));
    ck_assert_int_eq(rl_lookup_poll(lookup, &addresses), 1);
    ck_assert_uint_eq(addresses.count, RL_ADDRESSES_MAX);
    check_address(&addresses, RL_ADDRESSES_MAX - 1, "2001:db8::8", 1);
    rl_lookup_drop(lookup);
}
END_TEST

/* Each lookup returns the next addresses of the list and starts again after the last one. The
 * result has a bounded size even for thousands of addresses. */
START_TEST(many_addresses_are_taken_in_turn)
{
    static const unsigned counts[] = {1, 7, 8, 9, 20, 4000};
    const unsigned count = counts[_i];
    static unsigned shown[4001];

    memset(shown, 0, sizeof shown);
    server.addresses = count;
    for (unsigned total = 0; total < 2 * count;) {
        struct rl_addresses addresses;
        first_address = total;
        struct rl_lookup *lookup = start("h", 1);
        ck_assert(is_woken(DEADLINE_MS));
        uint64_t woken;
        ck_assert_int_eq(read(wake_fd, &woken, sizeof woken), sizeof woken);
        ck_assert_int_eq(rl_lookup_poll(lookup, &addresses), 1);
        rl_lookup_drop(lookup);
        ck_assert_uint_le(addresses.count, RL_ADDRESSES_MAX);
        for (unsigned i = 0; i < addresses.count; i++)
            shown[address_number(&addresses, i)]++;
        total += addresses.count;
    }
    for (unsigned i = 1; i <= count; i++)
        ck_assert_uint_eq(shown[i], 2);
}
END_TEST

START_TEST(failure_has_a_text)
{
    const struct {
        int error;
        unsigned addresses;
        const char *says;
    } cases[] = {{EAI_NONAME, 0, gai_strerror(EAI_NONAME)},
                 {EAI_AGAIN, 0, gai_strerror(EAI_AGAIN)},
                 {EAI_SYSTEM, 0, "error 24"},       /* EMFILE */
                 {0, 0, gai_strerror(EAI_NONAME)}}; /* no address of a usable family */
    struct rl_addresses addresses = {.count = 77};
    server.error = cases[_i].error;
    server.addresses = cases[_i].addresses;
    struct rl_lookup *lookup = start("h", 1);
    ck_assert(is_woken(DEADLINE_MS));
    ck_assert_int_eq(rl_lookup_poll(lookup, &addresses), -1);
    ck_assert_msg(strstr(rl_lookup_text(lookup), cases[_i].says) != NULL, "%s",
                  rl_lookup_text(lookup));
    ck_assert_uint_eq(addresses.count, 77);
    rl_lookup_drop(lookup);
}
END_TEST

/* The client and its eventfd are gone when the result comes, and the lookup uses neither. */
START_TEST(a_lookup_outlives_its_node)
{
    hold_results(true);
    struct rl_lookup *lookup = start("h", 1);
    wait_for_requests(1);
    rl_lookup_drop(lookup);
    close(wake_fd);
    wake_fd = -1;
    ck_assert_uint_eq(count_finished(), 0);
    hold_results(false);
    ck_assert(WAIT_UNTIL(count_finished() == 1, DEADLINE_MS));
}
END_TEST

/* The lookup is dropped before, while and after its thread ends. Sanitizers detect the errors. */
START_TEST(drop_races_with_the_thread)
{
    for (unsigned i = 0; i < 200; i++) {
        struct rl_addresses addresses;
        struct rl_lookup *lookup = start("h", 1);
        for (unsigned polls = 0; polls < i % 8; polls++)
            (void)rl_lookup_poll(lookup, &addresses);
        rl_lookup_drop(lookup);
    }
    rl_lookup_drop(NULL);
}
END_TEST

START_TEST(descriptors_are_not_inherited)
{
    struct fdcheck before;
    fdcheck_begin(&before);
    hold_results(true);
    struct rl_lookup *lookup = start("h", 1);
    const char *inherited = fdcheck_inherited(&before);
    hold_results(false);
    ck_assert_msg(inherited == NULL, "%s", inherited);
    rl_lookup_drop(lookup);
}
END_TEST

START_TEST(impossible_starts_are_refused)
{
    char host[300];
    memset(host, 'h', sizeof host - 1);
    host[sizeof host - 1] = '\0';
    ck_assert_ptr_null(rl_lookup_start(host, 1, 0, wake_fd)); /* longer than any name */
    ck_assert_ptr_null(rl_lookup_start("h", 1, 0, -1));
}
END_TEST

/* In the child the thread does not exist, so the lookup frees everything at once. */
START_TEST(drop_in_a_forked_child)
{
    int status;
    hold_results(true);
    struct rl_lookup *lookup = start("h", 1);
    wait_for_requests(1);
    pid_t child = fork();
    if (child == 0) {
        size_t open = fdcheck_count();
        rl_lookup_drop(lookup);
        _exit(fdcheck_count() == open - 1 ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    hold_results(false);
    ck_assert(is_woken(DEADLINE_MS));
    rl_lookup_drop(lookup);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_resolve");
    TCase *tcase = tcase_create("resolve");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, numeric_addresses_need_no_lookup, 0, 5);
    tcase_add_test(tcase, names_need_a_lookup);
    tcase_add_test(tcase, lookup_runs_beside_the_caller);
    tcase_add_test(tcase, the_number_of_addresses_is_limited);
    tcase_add_loop_test(tcase, many_addresses_are_taken_in_turn, 0, 6);
    tcase_add_loop_test(tcase, failure_has_a_text, 0, 4);
    tcase_add_test(tcase, a_lookup_outlives_its_node);
    tcase_add_test(tcase, drop_races_with_the_thread);
    tcase_add_test(tcase, descriptors_are_not_inherited);
    tcase_add_test(tcase, impossible_starts_are_refused);
    tcase_add_test(tcase, drop_in_a_forked_child);
    return suite_run_nofork(suite);
}
