/* SPDX-License-Identifier: MIT
 * What the binding uses of redlock.h and of operation.c, for cffi. "..." stands for fields that it
 * does not use; the compiler supplies them. */
typedef struct redlock_client redlock_t;
typedef struct redlock_config redlock_config_t;
typedef struct redlock_lock redlock_lock_t;
typedef struct redlock_cancel redlock_cancel_t;
typedef struct redlock_report redlock_report_t;
typedef void (*redlock_done_fn)(redlock_t *rl, int status, redlock_lock_t *lock,
                                const redlock_report_t *report, void *userdata);

typedef struct {
    uint64_t ttl_ms;
    uint64_t wait_ms;
    uint64_t validity_ms_min;
    uint32_t flags;
    redlock_cancel_t *cancel;
    uint64_t fence;
    const char *const *also;
    size_t also_count;
    uint32_t kind;
    uint32_t permits;
    const char *token;
    ...;
} redlock_opts_t;

typedef struct {
    int32_t state;
    uint32_t nodes;
    uint32_t quorum;
    uint32_t granted;
    uint32_t line_length;
    uint32_t line_more;
    uint32_t line_servers;
    ...;
} redlock_report_info_t;

typedef struct {
    const char *owner;
    uint64_t since_ms;
    ...;
} redlock_waiter_t;

typedef struct {
    const char *node;
    uint64_t pttl_ms;
    const char *owner;
    const char *text;
    int32_t key;
    ...;
} redlock_node_report_t;

typedef struct {
    uint64_t acquired;
    uint64_t contended;
    uint64_t no_quorum;
    uint64_t too_slow;
    uint64_t excluded;
    uint64_t canceled;
    uint64_t attempts;
    uint64_t split_votes;
    uint64_t extended;
    uint64_t extend_failed;
    uint64_t lost;
    uint64_t released;
    uint64_t release_failed;
    uint64_t undone;
    uint64_t held;
    uint64_t waiting;
    uint64_t fence_one_round;
    uint64_t fence_two_rounds;
    uint64_t queue_full;
    uint64_t wakeups;
    uint64_t queued;
    uint64_t undo_expired;
    uint64_t undo_dropped;
    uint64_t wait_us_sum;
    uint64_t endangered;
    uint64_t line_joins;
    uint64_t line_turns;
    uint64_t line_missed;
    uint64_t line_fallbacks;
    ...;
} redlock_stats_t;

typedef struct {
    const char *node;
    const char *shard;
    int32_t eligible;
    int32_t cause;
    char text[...];
    char version[...];
    char role[...];
    char run_id[...];
    char policy[...];
    char notify_text[...];
    int32_t notify_state;
    uint32_t features;
    uint32_t facts;
    uint32_t replicas;
    uint64_t maxmemory;
    uint64_t uptime_s;
    uint64_t quarantine_ms;
    int64_t clock_offset_us;
    uint64_t rtt_us;
    uint64_t rtt_us_sum;
    uint64_t requests;
    uint64_t granted;
    uint64_t denied;
    uint64_t errors;
    uint64_t timeouts;
    uint64_t replies_late;
    uint64_t reconnects;
    uint64_t undos_pending;
    uint64_t notifications;
    int32_t line_state;
    char line_text[...];
    ...;
} redlock_node_stats_t;

typedef struct {
    const char *name;
    const char *value;
} redlock_label_t;

#define REDLOCK_OK                     0
#define REDLOCK_EINVAL                 ...
#define REDLOCK_ENOMEM                 ...
#define REDLOCK_EFORKED                ...
#define REDLOCK_ECLOSED                ...
#define REDLOCK_ECANCELED              ...
#define REDLOCK_ECONTENDED             ...
#define REDLOCK_ENOQUORUM              ...
#define REDLOCK_ETOOSLOW               ...
#define REDLOCK_ELOST                  ...
#define REDLOCK_EEXCLUDED              ...
#define REDLOCK_EAUTH                  ...
#define REDLOCK_EFENCE                 ...
#define REDLOCK_FLAG_AUTO_EXTEND       ...
#define REDLOCK_FLAG_FENCE             ...
#define REDLOCK_KIND_PERMIT            ...
#define REDLOCK_STATE_UNKNOWN          ...
#define REDLOCK_STATE_FREE             ...
#define REDLOCK_STATE_HELD             ...
#define REDLOCK_KEY_UNKNOWN            ...
#define REDLOCK_KEY_ABSENT             ...
#define REDLOCK_KEY_EXPIRES            ...
#define REDLOCK_KEY_PERSISTENT         ...
#define REDLOCK_KEY_FOREIGN            ...
#define REDLOCK_ADMISSION_STRICT       ...
#define REDLOCK_TLS_VERIFY_FULL        ...
#define REDLOCK_TLS_VERIFY_CHAIN       ...
#define REDLOCK_TLS_VERIFY_NONE        ...
#define REDLOCK_ADMISSION_LENIENT      ...
#define REDLOCK_ADMISSION_PROVEN       ...
#define REDLOCK_FENCE_RECORDS_DURABLE  ...
#define REDLOCK_FENCE_RECORDS_VOLATILE ...
#define REDLOCK_RESOURCE_LEN_MAX       ...

const char *redlock_strerror(int error);
const char *redlock_error_name(int error);
bool redlock_error_is_retriable(int error);
const char *redlock_cause_name(int cause);
const char *redlock_version_string(void);

int redlock_config_new(redlock_config_t **ret_config, const void *allocator);
void redlock_config_free(redlock_config_t *config);
const char *redlock_config_error(const redlock_config_t *config);
int redlock_config_add_nodes(redlock_config_t *config, const char *urls);
typedef struct redlock_tls {
    size_t size;
    const char *cacert;
    const char *cert;
    const char *key;
    const char *sni;
    int verify;
} redlock_tls_t;

int redlock_config_set_tls(redlock_config_t *config, const redlock_tls_t *tls);
int redlock_config_set_auth(redlock_config_t *config, const char *user, const char *password);
int redlock_config_set_key_prefix(redlock_config_t *config, const char *prefix);
int redlock_config_set_fence_key(redlock_config_t *config, const char *key);
int redlock_config_set_fence_records(redlock_config_t *config, int records);
int redlock_config_set_admission(redlock_config_t *config, int admission);
int redlock_config_set_notifications(redlock_config_t *config, bool on);
int redlock_config_set_line(redlock_config_t *config, bool enabled);
int redlock_config_set_heartbeat_ms(redlock_config_t *config, uint32_t interval_ms);
int redlock_config_set_clock_slack_ms(redlock_config_t *config, uint32_t slack_ms);
int redlock_config_set_drift(redlock_config_t *config, uint32_t drift_ppm,
                             uint32_t drift_constant_us);
int redlock_config_set_owner(redlock_config_t *config, const char *label);
int redlock_config_set_max_ttl_ms(redlock_config_t *config, uint64_t max_ttl_ms);
int redlock_config_set_connect_timeout_ms(redlock_config_t *config, uint32_t timeout_ms);
int redlock_config_set_node_timeout_ms(redlock_config_t *config, uint32_t timeout_ms);
int redlock_config_set_keepalive_ms(redlock_config_t *config, uint32_t idle_ms);
int redlock_config_set_retry_ms(redlock_config_t *config, uint32_t delay_ms_min,
                                uint32_t delay_ms_max);
int redlock_config_set_queue_max(redlock_config_t *config, uint32_t waiters);

int redlock_new(redlock_t **ret_rl, redlock_config_t *config);
int redlock_wait_ready(redlock_t *rl, uint64_t wait_ms);
int redlock_set_auth(redlock_t *rl, const char *user, const char *password);
int redlock_shutdown(redlock_t *rl, uint64_t budget_ms);
int redlock_free(redlock_t *rl);
int redlock_get_stats(redlock_t *rl, redlock_stats_t *ret_stats, size_t size);
int redlock_get_shard_stats(redlock_t *rl, size_t index, redlock_stats_t *ret_stats, size_t size);
size_t redlock_node_count(const redlock_t *rl);
int redlock_get_node_stats(redlock_t *rl, size_t index, redlock_node_stats_t *ret_stats,
                           size_t size);
size_t redlock_shard_count(const redlock_t *rl);
const char *redlock_shard_name(const redlock_t *rl, size_t index);
int redlock_shard_of(const redlock_t *rl, const char *resource);
int redlock_stats_prometheus(redlock_t *rl, const redlock_label_t *labels, size_t label_count,
                             char *ret_text, size_t size);

int redlock_opts_init(redlock_opts_t *ret_opts, size_t size, uint64_t ttl_ms);
int redlock_cancel_new(redlock_cancel_t **ret_cancel, redlock_t *rl);
void redlock_cancel_trigger(redlock_cancel_t *cancel);
void redlock_cancel_free(redlock_cancel_t *cancel);

int redlock_acquire(redlock_t *rl, const char *resource, const redlock_opts_t *opts,
                    redlock_lock_t **ret_lock, redlock_report_t **ret_report);
int redlock_extend(redlock_lock_t *lock, uint64_t ttl_ms, redlock_report_t **ret_report);
int redlock_release(redlock_lock_t *lock, redlock_report_t **ret_report);
int redlock_release_after(redlock_lock_t *lock, uint64_t delay_ms, redlock_report_t **ret_report);
int redlock_release_token_all(redlock_t *rl, const char *const *resources, size_t count,
                              const char *token, redlock_report_t **ret_report);
int redlock_verify(redlock_lock_t *lock, redlock_report_t **ret_report);
int redlock_inspect(redlock_t *rl, const char *resource, redlock_report_t **ret_report);
int redlock_break(redlock_t *rl, const char *resource, redlock_report_t **ret_report);

int redlock_acquire_start(redlock_t *rl, const char *resource, const redlock_opts_t *opts,
                          redlock_done_fn fn, void *userdata);
int redlock_extend_start(redlock_lock_t *lock, uint64_t ttl_ms, redlock_done_fn fn, void *userdata);
int redlock_release_start(redlock_lock_t *lock, redlock_done_fn fn, void *userdata);
int redlock_release_after_start(redlock_lock_t *lock, uint64_t delay_ms, redlock_done_fn fn,
                                void *userdata);
int redlock_adopt_start(redlock_t *rl, const char *resource, const char *token,
                        const redlock_opts_t *opts, redlock_done_fn fn, void *userdata);
int redlock_verify_start(redlock_lock_t *lock, redlock_cancel_t *cancel, redlock_done_fn fn,
                         void *userdata);
int redlock_inspect_start(redlock_t *rl, const char *resource, redlock_cancel_t *cancel,
                          redlock_done_fn fn, void *userdata);

int redlock_lock_check(const redlock_lock_t *lock, uint64_t margin_ms);
uint64_t redlock_lock_remaining_ms(const redlock_lock_t *lock);
int redlock_lock_fd(redlock_lock_t *lock);
int redlock_lock_detach(redlock_lock_t *lock);
const char *redlock_lock_token(const redlock_lock_t *lock);
uint64_t redlock_lock_fence(const redlock_lock_t *lock);
int redlock_lock_slot(const redlock_lock_t *lock);
int redlock_slot_name(char *ret_name, size_t size, const char *resource, uint32_t slot);
void redlock_lock_free(redlock_lock_t *lock);

int redlock_report_get_info(const redlock_report_t *report, redlock_report_info_t *ret_info,
                            size_t size);
int redlock_report_get_node(const redlock_report_t *report, size_t index,
                            redlock_node_report_t *ret_node, size_t size);
int redlock_report_get_waiter(const redlock_report_t *report, size_t index,
                              redlock_waiter_t *ret_waiter, size_t size);
const char *redlock_report_text(const redlock_report_t *report);
void redlock_report_free(redlock_report_t *report);

typedef struct {
    int fd;
    int status;
    redlock_report_t *report;
    ...;
} operation_t;
operation_t *operation_new(bool acquires);
void operation_ref(operation_t *operation);
void operation_unref(operation_t *operation);
void operation_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
                    void *userdata);
redlock_lock_t *operation_take_lock(operation_t *operation);
void refusal_forget(void);
const char *refusal_text(void);
int refusal_log(redlock_config_t *config);
