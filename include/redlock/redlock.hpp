/* SPDX-License-Identifier: MIT
 *
 * redlock.hpp: the library for C++17, header-only, over redlock.h. Since 0.2.0.
 *
 *     redlock::client client("a:6379,b:6379,c:6379");
 *     redlock::options opts(10s);
 *     opts.wait = 5s;
 *     redlock::with(client, "invoice:42", opts, [&](auto &lock) {
 *         if (lock.owns_lock(500ms))
 *             bill(42);
 *     });
 *
 * unique_lock is used as std::unique_lock: it has lock(), try_lock(), try_lock_for(), unlock() and
 * owns_lock(), may be moved, and releases the lock in its destructor. std::scoped_lock,
 * std::unique_lock and std::lock() accept it. Unlike a mutex, a lock can be lost while it is held;
 * docs/guarantees.md says what that means.
 *
 * Errors
 *   Functions throw redlock::error, which is a std::system_error with a code of redlock_category()
 *   (enum errc). A function with a std::error_code & as last parameter does not throw: it sets the
 *   code, or clears it. std::bad_alloc is thrown as by the standard library. Contracts name errors
 *   by errc; those of redlock.h for the function of the same name apply.
 *
 * Functions of the caller (events, log)
 *   They run where callbacks run (enum redlock_mode), mostly on a thread of the library. They must
 *   not throw: an exception that leaves one ends the program with std::terminate(). The body of
 *   with() may throw.
 *
 * Threads
 *   As for the C functions: a client may be used by any thread, a unique_lock by one at a time. The
 *   functions that wait for servers fail with errc::mode in embedded mode and with errc::deadlock
 *   in a callback. There the _start functions of redlock.h are used with native(), and
 *   unique_lock(client, handle) takes over the lock that they deliver.
 *
 * What has no wrapper
 *   The functions of redlock.h take native() of a client or a lock. These are called so:
 *     - the _start functions, redlock_get_fd() and redlock_process(), for loops;
 *     - redlock_lock_retain(), because an object of C++ has one owner; redlock_lock_resource(),
 *       because a unique_lock is created with its names;
 *     - redlock_init_fence_records(), for operators;
 *     - names and versions: redlock_error_name(), redlock_error_at(), redlock_cause_name(),
 *       redlock_cause_count(), redlock_version_number(), redlock_version_string(),
 *       redlock_build_text().
 *   with(), options and release_token() take the place of redlock_with(), redlock_opts_init() and
 *   redlock_release_token().
 */
#ifndef REDLOCK_REDLOCK_HPP
#define REDLOCK_REDLOCK_HPP

#include <redlock/redlock.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace redlock
{

using std::chrono::milliseconds;

/* As options.wait and as a time limit: none. */
inline constexpr milliseconds forever = milliseconds::max();

/* Errors */

/* The errors of redlock.h. redlock_strerror() describes each of them. */
enum class errc : int {
    invalid_argument = REDLOCK_EINVAL,
    no_memory = REDLOCK_ENOMEM,
    system = REDLOCK_ESYS,
    closed = REDLOCK_ECLOSED,
    canceled = REDLOCK_ECANCELED,
    busy = REDLOCK_EBUSY,
    deadlock = REDLOCK_EDEADLK,
    forked = REDLOCK_EFORKED,
    queue_full = REDLOCK_EQUEUEFULL,
    mode = REDLOCK_EMODE,
    library = REDLOCK_ELIBRARY,
    contended = REDLOCK_ECONTENDED,
    no_quorum = REDLOCK_ENOQUORUM,
    too_slow = REDLOCK_ETOOSLOW,
    lost = REDLOCK_ELOST,
    excluded = REDLOCK_EEXCLUDED,
    auth = REDLOCK_EAUTH,
    fence = REDLOCK_EFENCE,
    duplicate = REDLOCK_EDUPLICATE
};

namespace detail
{

/* The category of the codes in errc. */
class category final : public std::error_category
{
  public:
    const char *name() const noexcept override
    {
        return "redlock";
    }

    std::string message(int code) const override
    {
        return redlock_strerror(code);
    }

    /* Returns the condition of the standard that means the same, if there is one: a code then
     * equals that std::errc. */
    std::error_condition default_error_condition(int code) const noexcept override
    {
        switch (static_cast<errc>(code)) {
        case errc::invalid_argument:
            return std::errc::invalid_argument;
        case errc::no_memory:
            return std::errc::not_enough_memory;
        case errc::canceled:
            return std::errc::operation_canceled;
        case errc::busy:
            return std::errc::device_or_resource_busy;
        case errc::deadlock:
            return std::errc::resource_deadlock_would_occur;
        case errc::auth:
            return std::errc::permission_denied;
        default:
            return {code, *this};
        }
    }
};

} // namespace detail

/* Returns the category of the codes in errc. Its name is "redlock". */
inline const std::error_category &redlock_category() noexcept
{
    static const detail::category category;
    return category;
}

/* Returns the error as a std::error_code. A comparison such as `code == redlock::errc::lost` uses
 * it. */
inline std::error_code make_error_code(errc error) noexcept
{
    return {static_cast<int>(error), redlock_category()};
}

/* Returns whether the same call can succeed later (redlock_error_is_retriable()); false for codes
 * of other categories. */
inline bool is_retriable(const std::error_code &code) noexcept
{
    return code.category() == redlock_category() && redlock_error_is_retriable(code.value());
}

} // namespace redlock

template <> struct std::is_error_code_enum<redlock::errc> : std::true_type {
};

namespace redlock
{

/* What an operation learned, server by server; may be empty. Copies share the report of the
 * library.
 */
class report
{
  public:
    report() noexcept = default;

    /* Takes over a report that the caller owns; NULL: an empty one. */
    explicit report(redlock_report_t *owned) noexcept : report_(owned)
    {
    }

    report(const report &other) noexcept
        : report_(other.report_ ? redlock_report_ref(other.report_) : nullptr)
    {
    }

    report(report &&other) noexcept : report_(std::exchange(other.report_, nullptr))
    {
    }

    report &operator=(report other) noexcept
    {
        std::swap(report_, other.report_);
        return *this;
    }

    ~report()
    {
        redlock_report_free(report_);
    }

    /* Returns whether there is a report. */
    explicit operator bool() const noexcept
    {
        return report_ != nullptr;
    }

    /* Returns one line for people; "" if the report is empty. Borrowed from the report. */
    const char *text() const noexcept
    {
        return redlock_report_text(report_);
    }

    /* Returns the outcome of the operation; all zero if the report is empty. Its strings are
     * borrowed from the report. */
    redlock_report_info_t info() const noexcept
    {
        redlock_report_info_t info = {};
        if (report_)
            redlock_report_get_info(report_, &info, sizeof info);
        return info;
    }

    /* Returns the number of servers in the report. */
    std::size_t nodes() const noexcept
    {
        return info().nodes;
    }

    /* Returns what was learned of one server. index: below nodes(); else throws
     * errc::invalid_argument. Its strings are borrowed from the report. */
    redlock_node_report_t node(std::size_t index) const;

    /* Returns what an inspection has learned of one waiter of the line; who waits for a permit is
     * in the report on the first slot, slot_name(resource, 0). index: below info().line_length;
     * else throws errc::invalid_argument. Its strings are borrowed from the report. Since 0.2.0. */
    redlock_waiter_t waiter(std::size_t index) const;

    /* Returns the report of the C interface; NULL: empty. Borrowed. */
    const redlock_report_t *native() const noexcept
    {
        return report_;
    }

  private:
    redlock_report_t *report_ = nullptr;
};

/* What this header throws. code() is of redlock_category(), or of std::generic_category() where a
 * unique_lock is used in a wrong state, as with std::unique_lock. */
class error : public std::system_error
{
  public:
    /* Creates an error of an operation. code: not 0. evidence: the report of the operation, or an
     * empty one. */
    explicit error(std::error_code code, report evidence = {})
        : std::system_error(code), evidence_(std::move(evidence))
    {
    }

    /* Creates an error without a report. text: what is wrong and what to do. */
    error(std::error_code code, const std::string &text) : std::system_error(code, text)
    {
    }

    /* Returns the line of the report, or the text of the code if there is no report. */
    const char *what() const noexcept override
    {
        const char *text = evidence_.text();
        return *text ? text : std::system_error::what();
    }

    /* Returns the report of the operation; may be empty. */
    const report &get_report() const noexcept
    {
        return evidence_;
    }

  private:
    report evidence_;
};

inline redlock_node_report_t report::node(std::size_t index) const
{
    redlock_node_report_t node = {};
    if (redlock_report_get_node(report_, index, &node, sizeof node) != REDLOCK_OK)
        throw error(make_error_code(errc::invalid_argument));
    return node;
}

inline redlock_waiter_t report::waiter(std::size_t index) const
{
    redlock_waiter_t waiter = {};
    if (redlock_report_get_waiter(report_, index, &waiter, sizeof waiter) != REDLOCK_OK)
        throw error(make_error_code(errc::invalid_argument));
    return waiter;
}

namespace detail
{

/* Returns a result of the C interface as a code; REDLOCK_OK and larger numbers are no error. */
inline std::error_code to_code(int result) noexcept
{
    return result < 0 ? make_error_code(static_cast<errc>(result)) : std::error_code();
}

/* Throws an error if the code is one. */
inline void check(const std::error_code &code, const report &evidence = {})
{
    if (code)
        throw error(code, evidence);
}

/* Returns a string for the C interface; it lives as long as `text`. Throws errc::invalid_argument
 * if the string contains NUL, where the library would cut it. */
inline const char *c_string(const std::string &text)
{
    if (text.find('\0') != std::string::npos)
        throw error(make_error_code(errc::invalid_argument), "a string contains NUL");
    return text.c_str();
}
const char *c_string(std::string &&) = delete;

/* Returns a duration for the C interface. A negative one becomes a number that every function
 * refuses. */
inline std::uint64_t to_ms(milliseconds duration) noexcept
{
    if (duration == forever)
        return REDLOCK_WAIT_FOREVER;
    const auto count = duration.count();
    return count < 0 ? std::uint64_t{1} << 63 : static_cast<std::uint64_t>(count);
}

/* Returns the same for a parameter of 32 bits. */
inline std::uint32_t to_ms32(milliseconds duration) noexcept
{
    const std::uint64_t ms = to_ms(duration);
    return ms > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(ms);
}

using event_function = std::function<void(const redlock_event_t &)>;
using log_function = std::function<void(int level, const char *message)>;

} // namespace detail

/* The configuration that a client is made from. Each setter is the function of config.h with the
 * same name; it throws error with the reason, and returns the configuration. One thread at a time.
 */
class config
{
  public:
    /* Creates a configuration with all defaults and without servers. */
    config()
    {
        redlock_config_t *made = nullptr;
        detail::check(detail::to_code(redlock_config_new(&made, nullptr)));
        config_.reset(made);
    }

    config &add_nodes(const std::string &urls)
    {
        return check(redlock_config_add_nodes(native(), detail::c_string(urls)));
    }

    config &add_shard(const std::string &name, const std::string &urls)
    {
        return check(
            redlock_config_add_shard(native(), detail::c_string(name), detail::c_string(urls)));
    }

    config &set_auth(const std::string &user, const std::string &password)
    {
        return check(
            redlock_config_set_auth(native(), detail::c_string(user), detail::c_string(password)));
    }

    config &set_mode(redlock_mode mode)
    {
        return check(redlock_config_set_mode(native(), mode));
    }

    config &set_key_prefix(const std::string &prefix)
    {
        return check(redlock_config_set_key_prefix(native(), detail::c_string(prefix)));
    }

    config &set_fence_key(const std::string &key)
    {
        return check(redlock_config_set_fence_key(native(), detail::c_string(key)));
    }

    config &set_fence_records(redlock_fence_records records)
    {
        return check(redlock_config_set_fence_records(native(), records));
    }

    /* tls.size is set here. */
    config &set_tls(redlock_tls_t tls)
    {
        tls.size = sizeof tls;
        return check(redlock_config_set_tls(native(), &tls));
    }

    config &set_owner(const std::string &label)
    {
        return check(redlock_config_set_owner(native(), detail::c_string(label)));
    }

    config &set_max_ttl(milliseconds max_ttl)
    {
        return check(redlock_config_set_max_ttl_ms(native(), detail::to_ms(max_ttl)));
    }

    config &set_connect_timeout(milliseconds timeout)
    {
        return check(redlock_config_set_connect_timeout_ms(native(), detail::to_ms32(timeout)));
    }

    config &set_node_timeout(milliseconds timeout)
    {
        return check(redlock_config_set_node_timeout_ms(native(), detail::to_ms32(timeout)));
    }

    config &set_keepalive(milliseconds idle)
    {
        return check(redlock_config_set_keepalive_ms(native(), detail::to_ms32(idle)));
    }

    config &set_retry(milliseconds delay_min, milliseconds delay_max)
    {
        return check(redlock_config_set_retry_ms(native(), detail::to_ms32(delay_min),
                                                 detail::to_ms32(delay_max)));
    }

    config &set_drift(std::uint32_t drift_ppm, std::uint32_t drift_constant_us)
    {
        return check(redlock_config_set_drift(native(), drift_ppm, drift_constant_us));
    }

    config &set_notifications(bool on)
    {
        return check(redlock_config_set_notifications(native(), on));
    }

    config &set_line(bool enabled)
    {
        return check(redlock_config_set_line(native(), enabled));
    }

    config &set_queue_max(std::uint32_t waiters)
    {
        return check(redlock_config_set_queue_max(native(), waiters));
    }

    config &set_heartbeat(milliseconds interval)
    {
        return check(redlock_config_set_heartbeat_ms(native(), detail::to_ms32(interval)));
    }

    config &set_clock_slack(milliseconds slack)
    {
        return check(redlock_config_set_clock_slack_ms(native(), detail::to_ms32(slack)));
    }

    config &set_admission(redlock_admission admission)
    {
        return check(redlock_config_set_admission(native(), admission));
    }

    /* Sets the function that receives log lines up to a level. function: void(int level, const char
     * *message); must not throw; kept until the last client that was made from the configuration is
     * gone. */
    config &set_log(redlock_log_level level_max, detail::log_function function)
    {
        auto kept = std::make_shared<detail::log_function>(std::move(function));
        check(redlock_config_set_log(native(), level_max, *kept ? log : nullptr, kept.get()));
        log_ = std::move(kept);
        return *this;
    }

    /* Sets the function that receives the events of servers and of all locks. function: void(const
     * redlock_event_t &); must not throw; kept as the function of set_log(). */
    config &set_event(detail::event_function function)
    {
        auto kept = std::make_shared<detail::event_function>(std::move(function));
        check(redlock_config_set_event(native(), *kept ? event : nullptr, kept.get()));
        event_ = std::move(kept);
        return *this;
    }

    /* Returns the validity of a lock with this TTL that is granted in no time. */
    milliseconds validity(milliseconds ttl) const noexcept
    {
        const std::uint64_t ms = redlock_config_validity_ms(config_.get(), detail::to_ms(ttl));
        return milliseconds(static_cast<milliseconds::rep>(ms));
    }

    /* Returns the configuration of the C interface. Borrowed. */
    redlock_config_t *native() const noexcept
    {
        return config_.get();
    }

  private:
    friend class client;

    struct deleter {
        void operator()(redlock_config_t *config) const noexcept
        {
            redlock_config_free(config);
        }
    };

    /* Throws if a setter returned an error. */
    config &check(int result)
    {
        if (result != REDLOCK_OK)
            throw error(detail::to_code(result), redlock_config_error(native()));
        return *this;
    }

    /* Calls the log function in userdata. */
    static void log(int level, const char *message, void *userdata) noexcept
    {
        (*static_cast<detail::log_function *>(userdata))(level, message);
    }

    /* Calls the event function in userdata. */
    static void event(redlock_t *, const redlock_event_t *event, void *userdata) noexcept
    {
        (*static_cast<detail::event_function *>(userdata))(*event);
    }

    std::unique_ptr<redlock_config_t, deleter> config_;
    std::shared_ptr<detail::log_function> log_;     /* userdata of the log function */
    std::shared_ptr<detail::event_function> event_; /* userdata of the event function */
};

/* The resources of one lock: one name or several. Several are acquired and held together, all or
 * none: {"account:1", "account:2"}. */
class names
{
  public:
    /* Takes one name, or several. A name, or a list of names in braces, is converted implicitly. */
    names(std::string name)
    {
        names_.push_back(std::move(name));
    }
    names(const char *name) : names(std::string(name))
    {
    }
    names(std::initializer_list<std::string> several) : names_(several)
    {
    }
    names(std::vector<std::string> several) : names_(std::move(several))
    {
    }

    /* Returns the names, in the order in which they were given. */
    const std::vector<std::string> &all() const noexcept
    {
        return names_;
    }

  private:
    std::vector<std::string> names_;
};

namespace detail
{

/* Returns pointers to the names, for the C interface; they live as long as `what`. Throws
 * errc::invalid_argument if a name contains NUL. */
inline std::vector<const char *> pointers_to(const names &what)
{
    std::vector<const char *> pointers;
    for (const std::string &name : what.all())
        pointers.push_back(c_string(name));
    return pointers;
}
std::vector<const char *> pointers_to(names &&) = delete;

} // namespace detail

/* Returns the name of a slot of a semaphore, `resource{#slot}`, under which a permit is adopted,
 * released by its token, inspected and broken (redlock_slot_name()). slot: below
 * REDLOCK_PERMITS_MAX. Throws errc::invalid_argument if the name is too long for a resource. */
inline std::string slot_name(const std::string &resource, std::uint32_t slot)
{
    char name[REDLOCK_RESOURCE_LEN_MAX + 1];
    detail::check(
        detail::to_code(redlock_slot_name(name, sizeof name, detail::c_string(resource), slot)));
    return name;
}

/* Labels that a caller adds to the figures for Prometheus: name and value of each. */
using labels = std::vector<std::pair<std::string, std::string>>;

/* A client: connections to all servers, and the thread that drives them. One for the whole process
 * is enough. It may be moved while nothing uses it. Locks may outlive it. */
class client
{
  public:
    /* Creates a client with all defaults and begins to connect. servers: as for
     * config::add_nodes(). */
    explicit client(const std::string &servers) : client(config().add_nodes(servers))
    {
    }

    /* Creates a client and begins to connect. The configuration may be used again or destroyed. */
    explicit client(const config &settings) : log_(settings.log_), event_(settings.event_)
    {
        const int result = redlock_new(&rl_, settings.native());
        if (result != REDLOCK_OK)
            throw error(detail::to_code(result), redlock_config_error(settings.native()));
    }

    client(client &&other) noexcept
        : log_(std::move(other.log_)), event_(std::move(other.event_)),
          rl_(std::exchange(other.rl_, nullptr))
    {
    }

    client &operator=(client &&other) noexcept
    {
        client taken(std::move(other));
        std::swap(log_, taken.log_);
        std::swap(event_, taken.event_);
        std::swap(rl_, taken.rl_);
        return *this;
    }

    /* Frees the client: ends waiting calls with errc::closed, releases held locks without waiting
     * for the servers, and closes the connections. Call shutdown() before, so that the last
     * releases arrive. Not in a callback of the client. */
    ~client()
    {
        if (rl_)
            redlock_free(rl_);
    }

    /* Waits until a majority of the servers is connected and eligible (redlock_wait_ready()). Other
     * calls do not need it. */
    void wait_ready(milliseconds limit)
    {
        std::error_code code;
        wait_ready(limit, code);
        detail::check(code);
    }
    void wait_ready(milliseconds limit, std::error_code &code) noexcept
    {
        code = detail::to_code(redlock_wait_ready(rl_, detail::to_ms(limit)));
    }

    /* Changes user and password for the servers whose address has none, from their next connection
     * on (redlock_set_auth()). "" as user: the default user. */
    void set_auth(const std::string &user, const std::string &password)
    {
        std::error_code code;
        set_auth(user, password, code);
        detail::check(code);
    }
    void set_auth(const std::string &user, const std::string &password, std::error_code &code)
    {
        code = detail::to_code(
            redlock_set_auth(rl_, detail::c_string(user), detail::c_string(password)));
    }

    /* Shuts the client down (redlock_shutdown()): ends waiting calls with errc::closed, releases
     * held locks, and waits until the deletes have been sent, at most for `limit`. */
    void shutdown(milliseconds limit)
    {
        std::error_code code;
        shutdown(limit, code);
        detail::check(code);
    }
    void shutdown(milliseconds limit, std::error_code &code) noexcept
    {
        code = detail::to_code(redlock_shutdown(rl_, detail::to_ms(limit)));
    }

    /* Asks who holds a resource, and who waits for it (redlock_inspect()). Returns the report: its
     * info().state, the owner on each server, and the waiters. */
    report inspect(const std::string &resource)
    {
        redlock_report_t *made = nullptr;
        const int result = redlock_inspect(rl_, detail::c_string(resource), &made);
        return checked(result, report(made));
    }

    /* Deletes the keys of a resource without its token (redlock_break()). */
    report break_lock(const std::string &resource)
    {
        redlock_report_t *made = nullptr;
        const int result = redlock_break(rl_, detail::c_string(resource), &made);
        return checked(result, report(made));
    }

    /* Releases, by its token, a lock that this client has no handle of
     * (redlock_release_token_all()). errc::lost: no majority had all names with it. */
    report release_token(const names &what, const std::string &token)
    {
        const std::vector<const char *> resources = detail::pointers_to(what);
        redlock_report_t *made = nullptr;
        const int result = redlock_release_token_all(rl_, resources.data(), resources.size(),
                                                     detail::c_string(token), &made);
        return checked(result, report(made));
    }

    /* Returns the statistics of all shards together. */
    redlock_stats_t stats() const
    {
        redlock_stats_t stats = {};
        detail::check(detail::to_code(redlock_get_stats(rl_, &stats, sizeof stats)));
        return stats;
    }

    /* Returns the statistics of one shard. shard: its index in shards(). */
    redlock_stats_t shard_stats(std::size_t shard) const
    {
        redlock_stats_t stats = {};
        detail::check(detail::to_code(redlock_get_shard_stats(rl_, shard, &stats, sizeof stats)));
        return stats;
    }

    /* Returns the state and the statistics of each server, in the order in which the servers were
     * added. Their strings `node` and `shard` are borrowed from the client. */
    std::vector<redlock_node_stats_t> node_stats() const
    {
        std::vector<redlock_node_stats_t> all(redlock_node_count(rl_));
        for (std::size_t i = 0; i < all.size(); i++)
            detail::check(detail::to_code(redlock_get_node_stats(rl_, i, &all[i], sizeof all[i])));
        return all;
    }

    /* Returns the names of the shards, in the order in which they were added. A client without
     * shards has one, with the name "". */
    std::vector<std::string> shards() const
    {
        std::vector<std::string> all(redlock_shard_count(rl_));
        for (std::size_t i = 0; i < all.size(); i++)
            all[i] = redlock_shard_name(rl_, i);
        return all;
    }

    /* Returns the index in shards() of the shard that a resource belongs to. */
    std::size_t shard_of(const std::string &resource) const
    {
        const int shard = redlock_shard_of(rl_, detail::c_string(resource));
        detail::check(detail::to_code(shard));
        return static_cast<std::size_t>(shard);
    }

    /* Returns the statistics of the client, of its shards and of its servers as text for
     * Prometheus (redlock_stats_prometheus()). extra: labels of all figures, each name once, at
     * most REDLOCK_LABELS_MAX; else throws errc::invalid_argument. */
    std::string prometheus(const labels &extra = {}) const
    {
        std::vector<redlock_label_t> all;
        for (const auto &[name, value] : extra)
            all.push_back({detail::c_string(name), detail::c_string(value)});
        std::string text(32768, '\0'); /* what seven servers need */
        for (;;) {
            const int len =
                redlock_stats_prometheus(rl_, all.data(), all.size(), text.data(), text.size());
            detail::check(detail::to_code(len));
            const auto needed = static_cast<std::size_t>(len);
            const bool fits = needed < text.size();
            text.resize(fits ? needed : needed + needed / 8 + 1); /* the numbers grow meanwhile */
            if (fits)
                return text;
        }
    }

    /* Returns the client of the C interface, for the functions that this class does not have.
     * Borrowed; NULL: moved from. */
    redlock_t *native() const noexcept
    {
        return rl_;
    }

  private:
    /* Throws if the operation failed, else returns its report. */
    static report checked(int result, report evidence)
    {
        detail::check(detail::to_code(result), evidence);
        return evidence;
    }

    std::shared_ptr<detail::log_function> log_;     /* kept alive for the client */
    std::shared_ptr<detail::event_function> event_; /* kept alive for the client */
    redlock_t *rl_ = nullptr;                       /* owned; NULL: moved from */
};

/* Ends acquisitions that wait, from another thread or from a signal handler. */
class cancel
{
  public:
    /* Creates a cancel for acquisitions of the client (options.cancel). */
    explicit cancel(client &owner)
    {
        detail::check(detail::to_code(redlock_cancel_new(&cancel_, owner.native())));
    }

    cancel(const cancel &) = delete;
    cancel &operator=(const cancel &) = delete;

    ~cancel()
    {
        redlock_cancel_free(cancel_);
    }

    /* Ends all acquisitions that have this cancel, and those that will have it, with
     * errc::canceled. Allowed in signal handlers. */
    void trigger() noexcept
    {
        redlock_cancel_trigger(cancel_);
    }

    /* Returns the cancel of the C interface. Borrowed. */
    redlock_cancel_t *native() const noexcept
    {
        return cancel_;
    }

  private:
    redlock_cancel_t *cancel_ = nullptr;
};

/* How a lock is acquired; redlock_opts_t(3) has the same options with all their rules. Each but
 * `ttl` has a default. */
struct options {
    /* Creates options with all defaults. ttl_of_keys: at most the max_ttl of the client. */
    explicit options(milliseconds ttl_of_keys) : ttl(ttl_of_keys)
    {
    }

    /* TTL of the keys, at most the max_ttl of the client. */
    milliseconds ttl;

    /* Time limit of lock(), of the constructor and of with(). 0: one attempt. */
    milliseconds wait = forever;

    /* Least validity that an acquisition must have left; with less, it fails with errc::too_slow.
     * 0: 1 ms. */
    milliseconds validity_min{0};

    bool auto_extend = false; /* extend the lock automatically while it is held */
    bool fence = false;       /* give the lock a fencing token: unique_lock::fence() */

    std::uint32_t extends_max = 0; /* most automatic extensions; 0: no limit */

    /* Validity left at which an automatic extension begins. 0: between 2/3 and 3/4 of it. */
    milliseconds extend_at{0};

    milliseconds hold_max{0}; /* age at which the lock is lost in any case; 0: no limit */

    /* Validity left at which on_event receives REDLOCK_EVENT_ENDANGERED. 0: a tenth of ttl. */
    milliseconds margin{0};

    std::uint32_t permits = 0;     /* not 0: a permit of a semaphore with this number of permits */
    std::string token;             /* not "": the caller's token; only for try_lock() */
    std::uint64_t adopt_fence = 0; /* adopt(): the fencing token of the lock, with `fence` */
    redlock_cancel_t *cancel = nullptr; /* of cancel::native(); must outlive the acquisition */

    /* Runs once if the lock is lost. Must not throw. The library keeps a copy of the function until
     * the lock has ended, at most until the client is destroyed, also if the unique_lock is
     * destroyed before. What the function refers to must live until then; a copy of a
     * std::shared_ptr in it does. */
    std::function<void()> on_lost;

    /* Receives all events of the lock. Must not throw. Kept as on_lost. */
    std::function<void(const redlock_event_t &)> on_event;
};

namespace detail
{

/* What the event function of one lock needs. Owned by the library from the acquisition on, until it
 * calls end(). */
struct listener {
    std::function<void()> on_lost;
    event_function on_event;

    /* Passes an event on. */
    static void run(redlock_t *, const redlock_event_t *event, void *userdata) noexcept
    {
        const listener *self = static_cast<listener *>(userdata);
        if (self->on_event)
            self->on_event(*event);
        if (self->on_lost && event->kind == REDLOCK_EVENT_LOST)
            self->on_lost();
    }

    /* Destroys the functions: no event follows. */
    static void end(void *userdata) noexcept
    {
        delete static_cast<listener *>(userdata);
    }
};

/* What is acquired and how; does not change, and is shared by copies of a pointer. */
class request
{
  public:
    request(names what, options how)
        : names_(std::move(what)), options_(std::move(how)), pointers_(pointers_to(names_))
    {
        c_string(options_.token);
    }
    request(const request &) = delete;
    request &operator=(const request &) = delete;

    /* Returns the first name; NULL: there is none, which the library refuses. */
    const char *resource() const noexcept
    {
        return pointers_.empty() ? nullptr : pointers_.front();
    }

    milliseconds wait() const noexcept
    {
        return options_.wait;
    }

    /* Writes the options for one call. They own a listener, which the call takes over. Its strings
     * belong to the request. Returns REDLOCK_OK or REDLOCK_ENOMEM. */
    int fill(redlock_opts_t &opts, milliseconds wait, bool adopts) const noexcept
    {
        opts = redlock_opts(to_ms(options_.ttl));
        opts.wait_ms = to_ms(wait);
        opts.validity_ms_min = to_ms(options_.validity_min);
        if (options_.auto_extend)
            opts.flags |= REDLOCK_FLAG_AUTO_EXTEND;
        if (options_.fence)
            opts.flags |= REDLOCK_FLAG_FENCE;
        opts.extends_max = options_.extends_max;
        opts.extend_at_ms = to_ms(options_.extend_at);
        opts.hold_ms_max = to_ms(options_.hold_max);
        opts.margin_ms = to_ms(options_.margin);
        opts.cancel = options_.cancel;
        opts.fence = adopts ? options_.adopt_fence : 0;
        opts.kind = options_.permits > 0 && !adopts ? REDLOCK_KIND_PERMIT : REDLOCK_KIND_EXCLUSIVE;
        opts.permits = adopts ? 0 : options_.permits;
        opts.token = options_.token.empty() || adopts ? nullptr : options_.token.c_str();
        if (pointers_.size() > 1) {
            opts.also = pointers_.data() + 1;
            opts.also_count = pointers_.size() - 1;
        }
        return listen(opts);
    }

  private:
    /* Adds the event function, if the caller has given one. */
    int listen(redlock_opts_t &opts) const noexcept
    {
        if (!options_.on_lost && !options_.on_event)
            return REDLOCK_OK;
        try {
            opts.event_userdata = new listener{options_.on_lost, options_.on_event};
        } catch (...) { /* copying a function allocates */
            return REDLOCK_ENOMEM;
        }
        opts.event_fn = listener::run;
        opts.event_end_fn = listener::end;
        return REDLOCK_OK;
    }

    names names_;
    options options_;
    std::vector<const char *> pointers_; /* to the names */
};

} // namespace detail

/* A lock on one or several resources, or a permit of a semaphore. It satisfies the requirements
 * TimedLockable and MoveAssignable of the standard. One thread at a time. */
class unique_lock
{
  public:
    /* Creates an object without a client, which a moved one can be assigned to. */
    unique_lock() noexcept = default;

    /* Acquires the lock as lock() does; throws if it is not acquired. */
    unique_lock(client &owner, names what, options how)
        : unique_lock(owner, std::move(what), std::move(how), std::defer_lock)
    {
        lock();
    }

    /* Does not acquire the lock yet. */
    unique_lock(client &owner, names what, options how, std::defer_lock_t)
        : rl_(owner.native()),
          request_(std::make_shared<const detail::request>(std::move(what), std::move(how)))
    {
    }

    /* Makes one attempt, as try_lock() does; owns_lock() returns whether the lock was acquired. */
    unique_lock(client &owner, names what, options how, std::try_to_lock_t)
        : unique_lock(owner, std::move(what), std::move(how), std::defer_lock)
    {
        try_lock();
    }

    /* Takes over a held lock, which a _start function of redlock.h has delivered. It cannot be
     * acquired again. handle: owned from now on. */
    unique_lock(client &owner, redlock_lock_t *handle) noexcept
        : rl_(owner.native()), handle_(handle)
    {
    }

    unique_lock(unique_lock &&other) noexcept
        : rl_(std::exchange(other.rl_, nullptr)), request_(std::move(other.request_)),
          handle_(std::exchange(other.handle_, nullptr)), report_(std::move(other.report_))
    {
    }

    /* Releases the lock that this object holds, in the background, and takes over the other one. */
    unique_lock &operator=(unique_lock &&other) noexcept
    {
        unique_lock taken(std::move(other));
        swap(taken);
        return *this;
    }

    /* Releases the lock if it is held. The release goes on in the background: call unlock() if its
     * result matters. */
    ~unique_lock()
    {
        redlock_lock_free(handle_);
    }

    void swap(unique_lock &other) noexcept
    {
        std::swap(rl_, other.rl_);
        std::swap(request_, other.request_);
        std::swap(handle_, other.handle_);
        std::swap(report_, other.report_);
    }

    /* Takes over, by its token, a lock that another client or process acquired (redlock_adopt()).
     * errc::lost: no majority has it. */
    static unique_lock adopt(client &owner, names what, const std::string &token, options how)
    {
        unique_lock made(owner, std::move(what), std::move(how), std::defer_lock);
        const char *held = detail::c_string(token);
        redlock_opts_t opts;
        redlock_report_t *evidence = nullptr;
        int result = made.request_->fill(opts, made.request_->wait(), true);
        if (result == REDLOCK_OK)
            result = redlock_adopt(made.rl_, made.request_->resource(), held, &opts, &made.handle_,
                                   &evidence);
        made.report_ = report(evidence);
        detail::check(detail::to_code(result), made.report_);
        return made;
    }

    /* Acquires the lock (redlock_acquire()). Waits at most for options.wait, without a limit if it
     * was not set. Throws errc::contended if another client still holds the lock,
     * std::errc::resource_deadlock_would_occur if this object holds it, and
     * std::errc::operation_not_permitted if it has no client. A lock that was lost or released can
     * be acquired again. */
    void lock()
    {
        std::error_code code;
        lock(code);
        detail::check(code, report_);
    }
    void lock(std::error_code &code) noexcept
    {
        acquire(request_ ? request_->wait() : milliseconds(0), code);
    }

    /* Makes one attempt. Returns whether the lock was acquired: false if another client holds it.
     * Throws every other error, such as errc::no_quorum. With a code, it is errc::contended then.
     */
    bool try_lock()
    {
        std::error_code code;
        return granted(try_lock(code), code);
    }
    bool try_lock(std::error_code &code) noexcept
    {
        return acquire(milliseconds(0), code);
    }

    /* Does the same with further attempts for a duration. */
    template <class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &duration)
    {
        std::error_code code;
        return granted(try_lock_for(duration, code), code);
    }
    template <class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &duration,
                      std::error_code &code) noexcept
    {
        const auto limit = std::chrono::ceil<milliseconds>(duration);
        return acquire(limit < milliseconds(0) ? milliseconds(0) : limit, code);
    }

    /* Does the same until a point in time. */
    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &limit)
    {
        return try_lock_for(limit - Clock::now());
    }

    /* Releases the lock (redlock_release()) and waits until a majority has confirmed it. Returns no
     * error, or errc::lost if the lock had been lost before, or errc::no_quorum, errc::excluded,
     * errc::auth or errc::no_memory if too few servers confirmed: then it is not held any more, and
     * its keys may stay until they expire. After errc::deadlock, errc::mode and errc::busy it is
     * still held. std::errc::operation_not_permitted: nothing was acquired. Never throws, so that
     * std::scoped_lock can call it. */
    std::error_code unlock() noexcept
    {
        return release(milliseconds(0));
    }

    /* Releases the lock in the same way, but its keys stay for `delay` without a holder
     * (redlock_release_after()). */
    std::error_code unlock_after(milliseconds delay) noexcept
    {
        return release(delay);
    }

    /* Returns whether the lock is held for at least `margin` more. It reads the clocks; no server
     * is asked. To be called right before each effect that must not happen twice. */
    bool owns_lock(milliseconds margin = milliseconds(0)) const noexcept
    {
        return handle_ && redlock_lock_check(handle_, detail::to_ms(margin)) == REDLOCK_OK;
    }

    /* Returns whether the lock is held now. */
    explicit operator bool() const noexcept
    {
        return owns_lock();
    }

    /* Returns the validity that is left; 0: the lock is not held. */
    milliseconds valid_for() const noexcept
    {
        return milliseconds(static_cast<milliseconds::rep>(redlock_lock_remaining_ms(handle_)));
    }

    /* Gives the lock a later deadline (redlock_extend()). ttl: from now on; 0: that of the options.
     */
    void extend(milliseconds ttl = milliseconds(0))
    {
        std::error_code code;
        extend(ttl, code);
        detail::check(code, report_);
    }
    void extend(milliseconds ttl, std::error_code &code) noexcept
    {
        call(code, [&](redlock_report_t **evidence) {
            return redlock_extend(handle_, detail::to_ms(ttl), evidence);
        });
    }

    /* Asks the servers whether they still have the lock (redlock_verify()). Throws errc::lost if no
     * majority has it. */
    void verify()
    {
        std::error_code code;
        verify(code);
        detail::check(code, report_);
    }
    void verify(std::error_code &code) noexcept
    {
        call(code, [&](redlock_report_t **evidence) { return redlock_verify(handle_, evidence); });
    }

    /* Stops relying on the lock without releasing it (redlock_lock_detach()). Returns its token,
     * with which adopt() takes it over. */
    std::string detach()
    {
        if (!handle_)
            throw error(std::make_error_code(std::errc::operation_not_permitted));
        std::string token = redlock_lock_token(handle_);
        detail::check(detail::to_code(redlock_lock_detach(handle_)));
        redlock_lock_free(std::exchange(handle_, nullptr));
        return token;
    }

    /* Returns a descriptor that becomes readable when the lock is lost (redlock_lock_fd()), for a
     * loop. It is closed when the lock is released or the object is assigned to: end the polling
     * before. Throws std::errc::operation_not_permitted if nothing was acquired. */
    int loss_fd() const
    {
        if (!handle_)
            throw error(std::make_error_code(std::errc::operation_not_permitted));
        const int fd = redlock_lock_fd(handle_);
        detail::check(detail::to_code(fd));
        return fd;
    }

    /* Returns the fencing token of a lock that was acquired with options.fence; 0: none. */
    std::uint64_t fence() const noexcept
    {
        return redlock_lock_fence(handle_);
    }

    /* Returns the token of the lock: the value of its keys; "": nothing was acquired. */
    std::string token() const
    {
        const char *token = redlock_lock_token(handle_);
        return token ? token : "";
    }

    /* Returns the slot of a permit; no value: the lock is no permit. */
    std::optional<std::uint32_t> slot() const noexcept
    {
        const int slot = handle_ ? redlock_lock_slot(handle_) : REDLOCK_EINVAL;
        return slot < 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(slot));
    }

    /* Returns the report of the last operation of this object; may be empty. */
    const report &get_report() const noexcept
    {
        return report_;
    }

    /* Returns the lock of the C interface; NULL: nothing was acquired. Borrowed until the lock is
     * released or the object is assigned to. */
    redlock_lock_t *native() const noexcept
    {
        return handle_;
    }

  private:
    /* Acquires the lock within the time limit. Returns whether it was acquired. */
    bool acquire(milliseconds wait, std::error_code &code) noexcept
    {
        if (owns_lock() || !request_) {
            code = std::make_error_code(request_ ? std::errc::resource_deadlock_would_occur
                                                 : std::errc::operation_not_permitted);
            report_ = report();
            return false;
        }
        redlock_lock_free(std::exchange(handle_, nullptr)); /* of a lock that was lost */
        redlock_opts_t opts;
        redlock_report_t *evidence = nullptr;
        int result = request_->fill(opts, wait, false);
        if (result == REDLOCK_OK)
            result = redlock_acquire(rl_, request_->resource(), &opts, &handle_, &evidence);
        report_ = report(evidence);
        code = detail::to_code(result);
        return result == REDLOCK_OK;
    }

    /* Returns `acquired`, unless the code is an error other than contention, which is thrown. */
    bool granted(bool acquired, const std::error_code &code) const
    {
        if (code != errc::contended)
            detail::check(code, report_);
        return acquired;
    }

    /* Calls a function of the C interface on the lock, and keeps its report. */
    template <class Function> void call(std::error_code &code, Function function) noexcept
    {
        redlock_report_t *evidence = nullptr;
        if (handle_)
            code = detail::to_code(function(&evidence));
        else
            code = std::make_error_code(std::errc::operation_not_permitted);
        report_ = report(evidence);
    }

    /* Releases the lock, and frees the handle if the lock is not held any more. */
    std::error_code release(milliseconds delay) noexcept
    {
        std::error_code code;
        call(code, [&](redlock_report_t **evidence) {
            return redlock_release_after(handle_, detail::to_ms(delay), evidence);
        });
        if (code != errc::deadlock && code != errc::mode && code != errc::busy &&
            code != errc::invalid_argument)
            redlock_lock_free(std::exchange(handle_, nullptr));
        return code;
    }

    redlock_t *rl_ = nullptr;                        /* borrowed; NULL: no client */
    std::shared_ptr<const detail::request> request_; /* NULL: cannot be acquired */
    redlock_lock_t *handle_ = nullptr;               /* owned; NULL: not acquired */
    report report_;                                  /* of the last operation */
};

inline void swap(unique_lock &a, unique_lock &b) noexcept
{
    a.swap(b);
}

/* Acquires a lock, runs body(lock) and releases the lock. what, how: as for the constructor of
 * unique_lock. body: callable with unique_lock &; if it throws, the lock is released in the
 * background and the exception goes on. Returns what body returned. Throws if the lock is not
 * acquired; then body did not run. Throws errc::lost if the lock was lost before body had ended.
 * That servers do not confirm the release is no error here. */
template <class Body>
std::invoke_result_t<Body, unique_lock &> with(client &owner, names what, options how, Body &&body)
{
    unique_lock held(owner, std::move(what), std::move(how));
    const auto end = [&held] {
        if (held.native() && held.unlock() == errc::lost)
            throw error(make_error_code(errc::lost), held.get_report());
    };
    using result_type = std::invoke_result_t<Body, unique_lock &>;
    if constexpr (std::is_void_v<result_type>) {
        std::invoke(std::forward<Body>(body), held);
        end();
    } else {
        result_type result = std::invoke(std::forward<Body>(body), held);
        end();
        return static_cast<result_type &&>(result);
    }
}

} // namespace redlock

#endif
