/* SPDX-License-Identifier: MIT
 * redlock.hpp: each class and function, with five real servers.
 *
 * Uses live.h: five real servers that run as long as the program. After each case no key and no
 * descriptor may be left. */
#include <redlock/redlock.h>

static int release_error; /* what release_or_fail() returns instead of REDLOCK_OK */

/* Releases a lock as redlock_release_after() does, which redlock.hpp calls. */
static int release_or_fail(redlock_lock_t *lock, uint64_t delay_ms, redlock_report_t **ret_report)
{
    const int result = redlock_release_after(lock, delay_ms, ret_report);
    return result == REDLOCK_OK ? release_error : result;
}

#define redlock_release_after release_or_fail
#include <redlock/redlock.hpp>
#undef redlock_release_after

#include <algorithm>
#include <atomic>
#include <check.h>
#include <cstdlib>
#include <cstring>
#include <future>
#include <poll.h>
#include <set>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#define _Atomic /* of C, in a struct of clockshim.h that is not used here */
extern "C" {
#include "live.h"
#include "suite.h"
}

using namespace std::chrono_literals;
using redlock::errc;
using redlock::unique_lock;

static_assert(std::is_nothrow_move_constructible_v<unique_lock>);
static_assert(std::is_nothrow_move_assignable_v<unique_lock>);
static_assert(std::is_nothrow_move_constructible_v<redlock::client>);
static_assert(std::is_nothrow_move_assignable_v<redlock::client>);
static_assert(std::is_nothrow_copy_constructible_v<redlock::error>);
static_assert(!std::is_copy_constructible_v<unique_lock>);
static_assert(std::is_error_code_enum_v<errc>);

/* Returns a configuration for the servers of the program, which may be slow. */
static redlock::config patient()
{
    const std::chrono::milliseconds limit(std::min<uint64_t>(wait_scaled_ms(NODE_TIME_MS), 60000));
    redlock::config config;
    config.add_nodes(cluster_urls(live.cluster)).set_connect_timeout(limit).set_node_timeout(limit);
    return config;
}

/* Returns a client that is connected to all servers. */
static redlock::client connected()
{
    redlock::client client(patient());
    client.wait_ready(redlock::forever);
    ck_assert(WAIT_UNTIL(live_voters(client.native()) == NODES, TIME_LIMIT_MS));
    return client;
}

/* Returns options for a lock that no case outlives. */
static redlock::options lasting()
{
    redlock::options opts(std::chrono::milliseconds(LONG_TTL_MS));
    opts.wait = std::chrono::milliseconds(wait_scaled_ms(TIME_LIMIT_MS));
    return opts;
}

/* Returns the code of the redlock::error that the function throws; no error if it throws none. */
template <class Function> static std::error_code thrown(Function function)
{
    try {
        function();
    } catch (const redlock::error &error) {
        ck_assert(error.what()[0] != '\0');
        return error.code();
    }
    return {};
}

/* Fails the case if two codes or conditions differ. */
template <class Wanted> static void check_code(const std::error_code &seen, Wanted wanted)
{
    ck_assert_msg(seen == wanted, "the code is %s:%d, %s", seen.category().name(), seen.value(),
                  seen.message().c_str());
}

/* Each error of the library is in errc and has its text; some equal conditions of the standard. */
START_TEST(errors_belong_to_a_category)
{
    for (size_t i = 0; redlock_error_at(i) != REDLOCK_OK; i++) {
        const std::error_code code = static_cast<errc>(redlock_error_at(i));
        ck_assert_str_eq(code.category().name(), "redlock");
        ck_assert(code.message() == redlock_strerror(redlock_error_at(i)));
        ck_assert(redlock::is_retriable(code) == redlock_error_is_retriable(redlock_error_at(i)));
    }
    check_code(errc::invalid_argument, std::errc::invalid_argument);
    check_code(errc::canceled, std::errc::operation_canceled);
    check_code(errc::no_memory, std::errc::not_enough_memory);
    check_code(errc::busy, std::errc::device_or_resource_busy);
    check_code(errc::deadlock, std::errc::resource_deadlock_would_occur);
    check_code(errc::auth, std::errc::permission_denied);
    ck_assert(std::error_code(errc::lost) != std::errc::invalid_argument);
    ck_assert(!redlock::is_retriable(std::make_error_code(std::errc::device_or_resource_busy)));
}
END_TEST

/* A lock excludes others while it is held, and may be acquired again; the destructor releases it.
 */
START_TEST(lock_is_acquired_and_released)
{
    redlock::client client = connected();
    {
        unique_lock lock(client, "a", lasting());
        ck_assert(lock && lock.owns_lock(1s));
        ck_assert(lock.valid_for() > 1s && lock.valid_for() <= 30s);
        ck_assert_uint_ge(live_nodes_with("a"), QUORUM);
        ck_assert(!lock.token().empty() && lock.fence() == 0 && !lock.slot());
        unique_lock other(client, std::string("a"), lasting(), std::try_to_lock);
        ck_assert(!other && !other.try_lock() && !other.try_lock_for(20ms));
        std::error_code code;
        ck_assert(!other.try_lock(code));
        check_code(code, errc::contended);
        ck_assert(std::strstr(other.get_report().text(), "held") != nullptr);
        check_code(lock.unlock(), std::error_code());
        ck_assert(!lock.owns_lock() && lock.valid_for() == 0ms && lock.token().empty());
        ck_assert(other.try_lock_until(std::chrono::steady_clock::now() + 30s));
        check_code(other.unlock_after(0ms), std::error_code());
        lock.lock();
        ck_assert(lock.owns_lock());
    }
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* A waiting try_lock_for() gets the lock when its holder, on another thread, releases it. */
START_TEST(waiter_gets_the_lock)
{
    redlock::client client = connected();
    unique_lock held(client, "a", lasting());
    auto waiter = std::async(std::launch::async, [&client] {
        unique_lock lock(client, "a", lasting(), std::defer_lock);
        return lock.try_lock_for(std::chrono::milliseconds(wait_scaled_ms(TIME_LIMIT_MS)));
    });
    ck_assert(WAIT_UNTIL(client.stats().waiting == 1, TIME_LIMIT_MS));
    check_code(held.unlock(), std::error_code());
    ck_assert(waiter.get());
}
END_TEST

/* Locks and clients move; the object that was moved from owns nothing. */
START_TEST(locks_and_clients_move)
{
    redlock::client first = connected();
    redlock::client client = std::move(first);
    ck_assert(first.native() == nullptr);
    unique_lock lock(client, "a", lasting());
    unique_lock other(std::move(lock));
    ck_assert(other.owns_lock() && !lock.owns_lock());
    check_code(thrown([&] { lock.lock(); }), std::errc::operation_not_permitted);
    unique_lock third(client, "b", lasting());
    third = std::move(other);
    ck_assert(third.owns_lock());
    ck_assert_uint_ge(live_nodes_with("a"), QUORUM);
    ck_assert(WAIT_UNTIL(live_nodes_with("b") == 0, TIME_LIMIT_MS));
    swap(third, lock);
    ck_assert(lock.owns_lock() && !third.owns_lock());
    client = redlock::client("127.0.0.1:1"); /* frees the client of the lock, which is released */
    ck_assert(!lock.owns_lock());
}
END_TEST

/* Without servers the error has the report; with a std::error_code nothing is thrown. */
START_TEST(failure_has_a_report)
{
    redlock::client client("127.0.0.1:1,127.0.0.1:2,127.0.0.1:3");
    redlock::options opts(10s);
    opts.wait = 0ms;
    try {
        unique_lock lock(client, "a", opts);
        ck_abort_msg("acquired without servers");
    } catch (const std::system_error &error) {
        check_code(error.code(), errc::no_quorum);
        const auto &report = dynamic_cast<const redlock::error &>(error).get_report();
        ck_assert_str_eq(error.what(), report.text());
        ck_assert(report && report.nodes() == 3 && report.info().quorum == 2);
        ck_assert_int_ne(report.node(2).vote, REDLOCK_VOTE_GRANTED);
        check_code(thrown([&] { report.node(3); }), errc::invalid_argument);
    }
    std::error_code code;
    unique_lock lock(client, "a", opts, std::defer_lock);
    lock.lock(code);
    check_code(code, errc::no_quorum);
    check_code(thrown([&] { lock.try_lock(); }), errc::no_quorum);
    client.wait_ready(0ms, code);
    check_code(code, errc::no_quorum);
    opts.ttl = -1ms;
    check_code(thrown([&] { unique_lock(client, "a", opts); }), errc::invalid_argument);
    opts = redlock::options(10s);
    opts.wait = -1ms;
    check_code(thrown([&] { unique_lock(client, "a", opts); }), errc::invalid_argument);
    check_code(thrown([&] { unique_lock(client, std::string("a\0b", 3), opts); }),
               errc::invalid_argument);
    check_code(thrown([&] { unique_lock(client, std::vector<std::string>(), opts); }),
               errc::invalid_argument);
}
END_TEST

/* A lock in the wrong state is refused as a std::unique_lock is. */
START_TEST(wrong_state_is_refused)
{
    redlock::client client = connected();
    unique_lock lock(client, "a", lasting(), std::defer_lock);
    std::error_code code;
    check_code(lock.unlock(), std::errc::operation_not_permitted);
    check_code(thrown([&] { lock.extend(); }), std::errc::operation_not_permitted);
    check_code(thrown([&] { lock.verify(); }), std::errc::operation_not_permitted);
    check_code(thrown([&] { lock.detach(); }), std::errc::operation_not_permitted);
    lock.lock();
    check_code(thrown([&] { lock.lock(); }), std::errc::resource_deadlock_would_occur);
    ck_assert(!lock.try_lock(code));
    check_code(code, std::errc::resource_deadlock_would_occur);
    unique_lock none;
    ck_assert(!none && none.native() == nullptr);
    check_code(thrown([&] { none.try_lock(); }), std::errc::operation_not_permitted);
}
END_TEST

/* The loss of a lock runs on_lost once, and its functions are destroyed afterwards. The lock can be
 * acquired again. */
START_TEST(loss_is_reported)
{
    redlock::client client = connected();
    auto lost = std::make_shared<std::atomic_int>(0);
    auto kinds = std::make_shared<std::atomic_int>(0);
    unique_lock lock;
    {
        redlock::options opts = lasting();
        opts.ttl = 2s;
        opts.extend_at = 1800ms;
        opts.auto_extend = true;
        opts.on_lost = [lost] { ++*lost; };
        opts.on_event = [kinds](const redlock_event_t &event) { *kinds |= 1 << event.kind; };
        lock = unique_lock(client, "a", opts);
    }
    cluster_command_all(live.cluster, "DEL a");
    ck_assert(WAIT_UNTIL(*lost == 1, TIME_LIMIT_MS));
    ck_assert(*kinds & 1 << REDLOCK_EVENT_ACQUIRED && *kinds & 1 << REDLOCK_EVENT_LOST);
    ck_assert(!lock && lock.valid_for() == 0ms);
    check_code(thrown([&] { lock.extend(); }), errc::lost);
    check_code(lock.unlock(), errc::lost);
    lock.lock();
    ck_assert(lock.owns_lock());
    check_code(lock.unlock(), std::error_code());
    lock = unique_lock();
    ck_assert(WAIT_UNTIL(lost.use_count() == 1 && kinds.use_count() == 1, TIME_LIMIT_MS));
    ck_assert_int_eq(*lost, 1);
}
END_TEST

/* Several names are one lock; a permit has a slot; a fencing token grows. */
START_TEST(kinds_of_locks)
{
    redlock::client client = connected();
    unique_lock both(client, {"{x}:a", "{x}:b"}, lasting());
    unique_lock one(client, "{x}:b", lasting(), std::try_to_lock);
    ck_assert(both && !one);
    redlock::options opts = lasting();
    opts.permits = 2;
    unique_lock permit(client, "s", opts), second(client, "s", opts);
    unique_lock third(client, "s", opts, std::try_to_lock);
    ck_assert(permit && second && !third);
    ck_assert((std::set<uint32_t>{*permit.slot(), *second.slot()} == std::set<uint32_t>{0, 1}));
}
END_TEST

/* The fencing token of a later holder is larger. */
START_TEST(fence_grows)
{
    redlock::client client(patient().set_fence_records(REDLOCK_FENCE_RECORDS_VOLATILE));
    redlock::options opts = lasting();
    opts.fence = true;
    unique_lock lock(client, "f", opts);
    const uint64_t before = lock.fence();
    ck_assert_uint_gt(before, 0);
    check_code(lock.unlock(), std::error_code());
    lock.lock();
    ck_assert_uint_gt(lock.fence(), before);
    opts.adopt_fence = lock.fence();
    unique_lock adopted = unique_lock::adopt(client, "f", lock.detach(), opts);
    ck_assert_uint_eq(adopted.fence(), opts.adopt_fence);
}
END_TEST

/* Each setter of a configuration passes its values on: the least and the largest are accepted, and
 * those beyond are refused. */
START_TEST(settings_arrive)
{
    redlock::config config;
    config.add_shard("east", "127.0.0.1:1").add_shard("west", "127.0.0.1:2");
    config.set_auth("user", "password").set_key_prefix("p:").set_fence_key("f").set_owner("o");
    config.set_fence_records(REDLOCK_FENCE_RECORDS_VOLATILE).set_drift(500000, 1000000);
    config.set_admission(REDLOCK_ADMISSION_PROVEN).set_mode(REDLOCK_MODE_HYBRID);
    config.set_connect_timeout(1min).set_node_timeout(1min).set_retry(1ms, 1min);
    config.set_notifications(false).set_line(false).set_queue_max(1000000).set_heartbeat(1min);
    config.set_clock_slack(1min).set_max_ttl(24h).set_keepalive(1h);
    check_code(thrown([&] { config.add_nodes("127.0.0.1:3"); }), errc::invalid_argument);
    check_code(thrown([&] { config.set_auth("user", ""); }), errc::invalid_argument);
    check_code(thrown([&] { config.set_fence_key(""); }), errc::invalid_argument);
    check_code(thrown([&] { config.set_owner("a b"); }), errc::invalid_argument);
    check_code(thrown([&] { config.set_drift(500001, 0); }), errc::invalid_argument);
    check_code(thrown([&] { config.set_connect_timeout(61s); }), errc::invalid_argument);
    check_code(thrown([&] { config.set_node_timeout(61s); }), errc::invalid_argument);
    check_code(thrown([&] { config.set_keepalive(61min); }), errc::invalid_argument);
    check_code(thrown([&] { config.set_retry(2ms, 1ms); }), errc::invalid_argument);
    check_code(thrown([&] { config.set_queue_max(1000001); }), errc::invalid_argument);
    check_code(thrown([&] { config.set_heartbeat(-1ms); }), errc::invalid_argument);
    check_code(thrown([&] { config.set_clock_slack(61s); }), errc::invalid_argument);
    check_code(thrown([&] { config.set_max_ttl(25h); }), errc::invalid_argument);
    ck_assert(redlock::config().validity(10s) > 9s && redlock::config().validity(10s) < 10s);
}
END_TEST

/* A lock is extended, verified, passed on by its token, inspected and broken. */
START_TEST(held_lock_is_used)
{
    redlock::client client = connected();
    redlock::options opts = lasting();
    opts.ttl = 5s;
    unique_lock lock(client, "a", opts);
    lock.extend(std::chrono::milliseconds(LONG_TTL_MS));
    ck_assert(lock.valid_for() > 5s);
    lock.verify();
    const std::string token = lock.detach();
    ck_assert(!lock && live_nodes_with("a") >= QUORUM);
    unique_lock adopted = unique_lock::adopt(client, "a", token, opts);
    ck_assert(adopted.owns_lock() && adopted.token() == token);
    check_code(thrown([&] { unique_lock::adopt(client, "a", "another", opts); }), errc::lost);
    ck_assert_int_eq(client.inspect("a").info().state, REDLOCK_STATE_HELD);
    ck_assert(client.break_lock("a"));
    check_code(thrown([&] { adopted.verify(); }), errc::lost);
    check_code(thrown([&] { client.release_token("a", token); }), errc::lost);
    ck_assert_uint_ge(client.stats().acquired, 1);
}
END_TEST

/* The statistics of a client, of its shards and of its servers, as structs and as text. */
START_TEST(statistics_are_read)
{
    redlock::client client = connected();
    unique_lock lock(client, "a", lasting());
    const std::vector<redlock_node_stats_t> nodes = client.node_stats();
    ck_assert_uint_eq(nodes.size(), NODES);
    for (const redlock_node_stats_t &node : nodes)
        ck_assert(node.eligible == 1 && std::strcmp(node.role, "master") == 0);
    ck_assert((client.shards() == std::vector<std::string>{""}));
    ck_assert_uint_eq(client.shard_of("a"), 0);
    ck_assert_uint_eq(client.shard_stats(0).held, 1);
    check_code(thrown([&] { client.shard_stats(1); }), errc::invalid_argument);
    check_code(thrown([&] { client.shard_of(""); }), errc::invalid_argument);
    const std::string text = client.prometheus();
    ck_assert(text.find("\nredlock_locks_held 1\n") != std::string::npos);
    ck_assert(text.size() == std::strlen(text.c_str()));
    const std::string value = "billing \"x\"";
    const std::string labeled = client.prometheus({{"service", value}, {"zone", "b"}});
    ck_assert(labeled.find("\nredlock_locks_held{service=\"billing \\\"x\\\"\",zone=\"b\"} 1\n") !=
              std::string::npos);
    check_code(thrown([&] { client.prometheus({{"le", "1"}}); }), errc::invalid_argument);
    check_code(thrown([&] {
                   client.prometheus({{"a", std::string("b\0c", 3)}});
               }),
               errc::invalid_argument);
}
END_TEST

/* A text for Prometheus that is longer than the first buffer is complete. */
START_TEST(long_texts_are_complete)
{
    redlock::client client = connected();
    std::vector<std::pair<std::string, std::string>> labels;
    for (unsigned i = 0; i < REDLOCK_LABELS_MAX; i++)
        labels.emplace_back("label" + std::to_string(i), std::string(REDLOCK_LABEL_VALUE_MAX, 'v'));
    const std::string text = client.prometheus(labels);
    ck_assert_uint_gt(text.size(), 1000000);
    ck_assert(text.size() == std::strlen(text.c_str()) && text.back() == '\n');
    labels.emplace_back("one", "more");
    check_code(thrown([&] { client.prometheus(labels); }), errc::invalid_argument);
}
END_TEST

/* Resources belong to shards, which have statistics of their own. */
START_TEST(shards_have_names)
{
    redlock::config config;
    config.add_shard("east", "127.0.0.1:1").add_shard("west", "127.0.0.1:2");
    redlock::client client(config);
    ck_assert((client.shards() == std::vector<std::string>{"east", "west"}));
    std::set<std::size_t> found;
    for (unsigned i = 0; i < 100; i++)
        found.insert(client.shard_of("name" + std::to_string(i)));
    ck_assert((found == std::set<std::size_t>{0, 1}));
    ck_assert_str_eq(client.node_stats()[1].shard, "west");
    ck_assert_uint_eq(client.shard_stats(1).held, 0);
}
END_TEST

/* A lock is released by its token: one name, several, or the slot of a permit. */
START_TEST(token_releases_a_lock)
{
    redlock::client client = connected();
    unique_lock one(client, "a", lasting());
    client.release_token("a", one.detach());
    unique_lock both(client, {"{x}:a", "{x}:b"}, lasting());
    client.release_token({"{x}:a", "{x}:b"}, both.detach());
    ck_assert(WAIT_UNTIL(live_nodes_with("{x}:b") == 0, TIME_LIMIT_MS));
    redlock::options opts = lasting();
    opts.permits = 2;
    unique_lock permit(client, "s", opts);
    const std::string name = redlock::slot_name("s", *permit.slot());
    ck_assert(name == "s{#0}" || name == "s{#1}");
    client.release_token(name, permit.detach());
    check_code(thrown([&] { redlock::slot_name("s", REDLOCK_PERMITS_MAX); }),
               errc::invalid_argument);
    check_code(thrown([&] { redlock::slot_name(std::string(600, 's'), 0); }),
               errc::invalid_argument);
}
END_TEST

/* A string that the library would cut at its NUL is refused: it would name another lock. */
START_TEST(strings_contain_no_nul)
{
    const std::string cut("a\0b", 3);
    redlock::client client = connected();
    redlock::config config;
    unique_lock lock(client, "a", lasting());
    redlock::options opts = lasting();
    opts.token = cut;
    check_code(thrown([&] { client.break_lock(cut); }), errc::invalid_argument);
    check_code(thrown([&] { client.inspect(cut); }), errc::invalid_argument);
    check_code(thrown([&] { client.shard_of(cut); }), errc::invalid_argument);
    check_code(thrown([&] { client.release_token("a", cut); }), errc::invalid_argument);
    check_code(thrown([&] { unique_lock::adopt(client, "a", cut, lasting()); }),
               errc::invalid_argument);
    check_code(thrown([&] { unique_lock(client, {"b", cut}, lasting()); }), errc::invalid_argument);
    check_code(thrown([&] { unique_lock(client, "b", opts, std::defer_lock); }),
               errc::invalid_argument);
    check_code(thrown([&] { config.set_auth("user", cut); }), errc::invalid_argument);
    check_code(thrown([&] { config.set_key_prefix(cut); }), errc::invalid_argument);
    ck_assert(lock.owns_lock());
}
END_TEST

/* A loop learns of a loss through a descriptor. */
START_TEST(descriptor_reports_a_loss)
{
    redlock::client client = connected();
    unique_lock lock(client, "a", lasting(), std::defer_lock);
    check_code(thrown([&] { lock.loss_fd(); }), std::errc::operation_not_permitted);
    lock.lock();
    pollfd ready = {lock.loss_fd(), POLLIN, 0};
    ck_assert_int_eq(poll(&ready, 1, 0), 0);
    cluster_command_all(live.cluster, "DEL a");
    check_code(thrown([&] { lock.verify(); }), errc::lost);
    ck_assert_int_eq(poll(&ready, 1, wait_scaled_ms(TIME_LIMIT_MS)), 1);
}
END_TEST

/* The standard's lock classes and algorithms accept a lock. */
START_TEST(standard_classes_accept_a_lock)
{
    redlock::client client = connected();
    unique_lock a(client, "a", lasting(), std::defer_lock);
    unique_lock b(client, "b", lasting(), std::defer_lock);
    {
        std::scoped_lock both(a, b);
        ck_assert(a && b);
    }
    ck_assert(!a && !b);
    {
        std::unique_lock guard(a, 10s);
        ck_assert(guard && a);
        std::lock_guard other(b);
        ck_assert(b.owns_lock());
    }
    ck_assert(!a && !b);
}
END_TEST

/* with() passes results and exceptions on and releases the lock; a loss is an error, and without
 * the lock the body does not run. */
START_TEST(with_runs_the_body_under_the_lock)
{
    redlock::client client = connected();
    auto made = redlock::with(client, "a", lasting(), [](unique_lock &lock) {
        return std::make_unique<bool>(lock.owns_lock());
    });
    ck_assert(*made);
    int number = 0;
    int &same = redlock::with(client, "a", lasting(), [&](auto &) -> int & { return number; });
    ck_assert(&same == &number);
    try {
        redlock::with(client, "a", lasting(), [](auto &) { throw std::out_of_range("body"); });
        ck_abort_msg("the exception is gone");
    } catch (const std::out_of_range &) {
        number++;
    }
    ck_assert_int_eq(number, 1);
    redlock::with(client, "a", lasting(), [](unique_lock &lock) { lock.unlock(); });
    check_code(thrown([&] {
                   redlock::with(client, "a", lasting(), [&](auto &) {
                       cluster_command_all(live.cluster, "DEL a");
                       number++;
                   });
               }),
               errc::lost);
    ck_assert_int_eq(number, 2);
    unique_lock held(client, "a", lasting());
    redlock::options once = lasting();
    once.wait = 0ms;
    check_code(thrown([&] { redlock::with(client, "a", once, [&](auto &) { number++; }); }),
               errc::contended);
    ck_assert_int_eq(number, 2);
}
END_TEST

/* A cancel ends an acquisition that waits without a time limit. */
START_TEST(cancel_ends_the_waiting)
{
    redlock::client client = connected();
    redlock::cancel cancel(client);
    unique_lock held(client, "a", lasting());
    redlock::options opts(10s);
    opts.cancel = cancel.native();
    auto waiter = std::async(std::launch::async,
                             [&] { return thrown([&] { unique_lock(client, "a", opts); }); });
    ck_assert(WAIT_UNTIL(client.stats().waiting == 1, TIME_LIMIT_MS));
    cancel.trigger();
    check_code(waiter.get(), errc::canceled);
}
END_TEST

/* A refused setting throws its text; log and events of a client arrive, also after the
 * configuration is gone. */
START_TEST(configuration_is_checked)
{
    std::atomic_int lines(0), nodes_up(0);
    redlock::config refused;
    try {
        refused.set_max_ttl(1ms);
        ck_abort_msg("accepted");
    } catch (const redlock::error &error) {
        check_code(error.code(), errc::invalid_argument);
        ck_assert(std::strstr(error.what(), redlock_config_error(refused.native())));
    }
    check_code(thrown([] { redlock::client("no such:address:0"); }), errc::invalid_argument);
    redlock::client client(
        patient()
            .set_owner("cpp")
            .set_max_ttl(40s)
            .set_log(REDLOCK_LOG_DEBUG, [&](int, const char *text) { lines += *text != '\0'; })
            .set_event([&](const redlock_event_t &event) {
                nodes_up += event.kind == REDLOCK_EVENT_NODE_UP;
            }));
    ck_assert(WAIT_UNTIL(nodes_up == NODES, TIME_LIMIT_MS));
    unique_lock lock(client, "", lasting(), std::defer_lock);
    check_code(thrown([&] { lock.lock(); }), errc::invalid_argument);
    lock = unique_lock(client, "a", lasting());
    const redlock::report found = client.inspect("a");
    ck_assert_uint_eq(found.nodes(), NODES);
    ck_assert_int_eq(found.info().state, REDLOCK_STATE_HELD);
    unsigned owners = 0;
    for (size_t i = 0; i < found.nodes(); i++)
        owners += std::strcmp(found.node(i).owner, "cpp") == 0;
    ck_assert_uint_ge(owners, QUORUM);
    check_code(thrown([&] { found.waiter(0); }), errc::invalid_argument);
    free(cluster_command(live.cluster, 0, "SET %s %s PX 60000", "a{#q}",
                         "redlock-line\n7 0 w 0 1700000000000 waits\n"));
    const redlock::report line = client.inspect("a"); /* it owns the label */
    ck_assert_str_eq(line.waiter(0).owner, "waits");
    free(cluster_command(live.cluster, 0, "DEL %s", "a{#q}"));
    free(cluster_command(live.cluster, 0, "SET %s %s PX 60000", "s{#}{#q}",
                         "redlock-line\n7 0 w 0 1700000000000 waits\n"));
    const redlock::report permits = client.inspect(redlock::slot_name("s", 0));
    ck_assert_str_eq(permits.waiter(0).owner, "waits");
    free(cluster_command(live.cluster, 0, "DEL %s", "s{#}{#q}"));
    client.shutdown(std::chrono::milliseconds(wait_scaled_ms(TIME_LIMIT_MS)));
    ck_assert(!lock);
    check_code(thrown([&] { lock.lock(); }), errc::closed);
    ck_assert_int_gt(lines, 0);
}
END_TEST

/* In embedded mode calls that wait are refused; a lock of a _start function is taken over. */
START_TEST(lock_of_a_loop_is_taken_over)
{
    redlock::client client(patient().set_mode(REDLOCK_MODE_EMBEDDED));
    check_code(thrown([&] { unique_lock(client, "a", lasting()); }), errc::mode);
    redlock_lock_t *handle = nullptr;
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    const auto keep = [](redlock_t *, int, redlock_lock_t *lock, const redlock_report_t *,
                         void *userdata) { *static_cast<redlock_lock_t **>(userdata) = lock; };
    ck_assert(LOOP_UNTIL(client.native(), live_voters(client.native()) == NODES, TIME_LIMIT_MS));
    CHECK_STATUS(redlock_acquire_start(client.native(), "a", &opts, keep, &handle), REDLOCK_OK);
    ck_assert(LOOP_UNTIL(client.native(), handle != nullptr, TIME_LIMIT_MS));
    unique_lock lock(client, handle);
    ck_assert(lock.owns_lock() && lock.native() == handle);
    check_code(lock.unlock(), errc::mode);
    ck_assert(lock.owns_lock());
}
END_TEST

/* An exception that leaves a function of the caller ends the program where it is thrown. */
START_TEST(exception_of_an_event_function_terminates)
{
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        std::set_terminate([] { _exit(42); });
        redlock::options opts = lasting();
        opts.on_event = [](const redlock_event_t &) { throw std::runtime_error("event"); };
        redlock::client client(patient());
        unique_lock lock(client, "a", opts);
        poll(nullptr, 0, TIME_LIMIT_MS);
        _exit(0);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 42, "status %x", status);
    cluster_command_all(live.cluster, "FLUSHALL");
}
END_TEST

/* The lock is not held any more after a release that too few servers confirm, for want of memory
 * too, and it can be acquired again. */
START_TEST(release_without_memory_ends_the_lock)
{
    redlock::client client = connected();
    unique_lock lock(client, "a", lasting());
    for (const errc error : {errc::no_memory, errc::no_quorum}) {
        release_error = static_cast<int>(error);
        check_code(lock.unlock(), error);
        release_error = REDLOCK_OK;
        ck_assert_ptr_null(lock.native());
        ck_assert(!lock.owns_lock() && lock.token().empty());
        lock.lock();
        ck_assert(lock.owns_lock());
    }
}
END_TEST

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main()
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    Suite *suite = suite_create("cpp");
    live_add(suite, "errors", errors_belong_to_a_category);
    live_add(suite, "lock", lock_is_acquired_and_released);
    live_add(suite, "release", release_without_memory_ends_the_lock);
    live_add(suite, "waiter", waiter_gets_the_lock);
    live_add(suite, "move", locks_and_clients_move);
    live_add(suite, "report", failure_has_a_report);
    live_add(suite, "state", wrong_state_is_refused);
    live_add(suite, "loss", loss_is_reported);
    live_add(suite, "kinds", kinds_of_locks);
    live_add(suite, "fence", fence_grows);
    live_add(suite, "use", held_lock_is_used);
    live_add(suite, "statistics", statistics_are_read);
    live_add(suite, "long text", long_texts_are_complete);
    live_add(suite, "shards", shards_have_names);
    live_add(suite, "token", token_releases_a_lock);
    live_add(suite, "NUL", strings_contain_no_nul);
    live_add(suite, "descriptor", descriptor_reports_a_loss);
    live_add(suite, "standard", standard_classes_accept_a_lock);
    live_add(suite, "with", with_runs_the_body_under_the_lock);
    live_add(suite, "cancel", cancel_ends_the_waiting);
    live_add(suite, "configuration", configuration_is_checked);
    live_add(suite, "settings", settings_arrive);
    live_add(suite, "embedded", lock_of_a_loop_is_taken_over);
    live_add(suite, "terminate", exception_of_an_event_function_terminates);
    const int status = suite_run_nofork(suite);
    live_stop_servers();
    return status;
}
