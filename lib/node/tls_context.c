/* SPDX-License-Identifier: MIT
 * The certificates and keys of a client, and their renewal.
 *
 * rl_tls_contexts_add() reads the files when the client is made, so that the caller sees what is
 * wrong with them. Before each connection rl_tls_context_refresh() has a thread compare the files
 * with those that were read, by stat(), and read them if they differ. rl_tls_context_settle() uses
 * the result, or keeps what is in use and logs why. Nothing here waits for a file system on the
 * thread of the connections, which extends locks. */
#include "node/background.h"
#include "node/tls_parts.h"
#include "redlock/redlock.h"

#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES     3 /* cacert, cert, key */
#define ERROR_MAX 400
#define REREAD_NS UINT64_C(60000000000) /* see rl_tls_context_refresh() */

/* What stat() says about a file: changes if another file takes its place, or its content changes.
 * All zero: stat() has failed, or no file is named. */
struct stamp {
    uint64_t device, inode, size;
    int64_t changed_s, changed_ns;
};

/* Files that a thread looks at, and reads if need be. The thread writes `stamps` and all that
 * follows. */
struct reload {
    struct rl_background work;       /* must be the first member */
    struct rl_tls_settings settings; /* allocated by libc */
    bool forced;                     /* to be read although they are the same: TLS has failed */
    struct stamp stamps[FILES];      /* before: of the files in use; then: as they are now */
    bool changed;                    /* the two differ */
    bool exposed;                    /* is_key_exposed() */
    SSL_CTX *native;                 /* what was read; NULL: nothing */
    int result;                      /* of rl_tls_load(), with `error` */
    char error[ERROR_MAX];
};

struct rl_tls_context {
    struct rl_tls_context *next;
    const struct rl_mem *mem;
    const struct rl_log *log;
    struct rl_tls_settings settings; /* `sni` is not used: it is the address's own */
    BIO_METHOD *bio;
    SSL_CTX *native;            /* what is in use */
    struct stamp stamps[FILES]; /* the files as they were when they were read last; zero for those
                                 * that are not named, and after a failure that may pass, so that
                                 * the next connection finds a difference and reads them again */
    unsigned generation;        /* how often `native` was replaced */
    struct reload *reload;      /* the running thread, or one whose result was not used yet */
    bool proceeds;              /* connections use the earlier files while that thread runs */
    bool doubted;               /* TLS has failed on a connection that used `native` */
    uint64_t next_reread_ns;    /* the files are not read before this time for that reason */
};

/* Returns the OpenSSL object of the certificates that are in use. */
SSL_CTX *rl_tls_context_native(const struct rl_tls_context *context)
{
    return context->native;
}

/* Returns how often other files have come into use. */
unsigned rl_tls_context_generation(const struct rl_tls_context *context)
{
    return context->generation;
}

/* Notes that TLS has failed on a connection that uses the certificates in use. */
void rl_tls_context_doubt(struct rl_tls_context *context)
{
    context->doubted = true;
}

/* Returns the allocator of the client. */
const struct rl_mem *rl_tls_context_mem(const struct rl_tls_context *context)
{
    return context->mem;
}

/* Returns the functions of the BIO. */
const BIO_METHOD *rl_tls_context_bio(const struct rl_tls_context *context)
{
    return context->bio;
}

/* Returns true: this library is built with TLS. */
bool rl_node_spec_tls_is_built(void)
{
    return true;
}

/* Reads what stat() says about a file. NULL: no file. */
static void take_stamp(const char *path, struct stamp *ret)
{
    struct stat found;

    memset(ret, 0, sizeof *ret);
    if (path != NULL && stat(path, &found) == 0)
        *ret = (struct stamp){(uint64_t)found.st_dev, (uint64_t)found.st_ino,
                              (uint64_t)found.st_size, found.st_ctim.tv_sec, found.st_ctim.tv_nsec};
}

/* Reads the stamps of the files that the settings name. */
static void take_stamps(const struct rl_tls_settings *settings, struct stamp stamps[FILES])
{
    take_stamp(settings->cacert, &stamps[0]);
    take_stamp(settings->cert, &stamps[1]);
    take_stamp(settings->key, &stamps[2]);
}

/* Returns the file with the private key; NULL: none is named. */
static const char *key_path(const struct rl_tls_settings *settings)
{
    return settings->key != NULL ? settings->key : settings->cert;
}

/* Returns true if other users can read the private key. */
static bool is_key_exposed(const struct rl_tls_settings *settings)
{
    const char *path = key_path(settings);
    struct stat found;

    return path != NULL && stat(path, &found) == 0 && (found.st_mode & S_IROTH) != 0;
}

/* Logs a warning if other users can read the private key (`exposed`). */
static void warn_about_key(const struct rl_tls_context *context, bool exposed)
{
    if (exposed)
        rl_logf(context->log, REDLOCK_LOG_WARN,
                "TLS: every user of this machine can read the private key in %s; remove that right "
                "(chmod o-r)",
                key_path(&context->settings));
}

/* Logs a warning if servers are not verified, for the first such context of the list only. */
static void warn_about_verification(const struct rl_tls_context *context,
                                    const struct rl_tls_context *others)
{
    if (context->settings.verify != RL_TLS_VERIFY_NONE)
        return;
    for (; others != NULL; others = others->next)
        if (others->settings.verify == RL_TLS_VERIFY_NONE)
            return;
    rl_logf(context->log, REDLOCK_LOG_WARN,
            "TLS: the certificates of servers are not verified (verify=none): any process that can "
            "answer in place of a server can grant locks and read the password");
}

/* Frees a context that no connection uses. */
static void free_context(struct rl_tls_context *context, bool forked)
{
    const struct rl_mem *mem = context->mem;

    if (context->reload != NULL)
        rl_background_drop(&context->reload->work);
    if (!forked) {
        SSL_CTX_free(context->native);
        BIO_meth_free(context->bio);
    }
    rl_node_spec_tls_done(mem, &context->settings);
    rl_free(mem, context);
}

/* Frees all contexts of a list. */
void rl_tls_contexts_free(struct rl_tls_context *contexts, bool forked)
{
    while (contexts != NULL) {
        struct rl_tls_context *next = contexts->next;
        free_context(contexts, forked);
        contexts = next;
    }
}

/* Returns the context for settings that were added. NULL: they were not. */
struct rl_tls_context *rl_tls_contexts_find(struct rl_tls_context *contexts,
                                            const struct rl_tls_settings *settings)
{
    while (contexts != NULL && !rl_node_spec_tls_same(&contexts->settings, settings))
        contexts = contexts->next;
    return contexts;
}

/* Writes why OpenSSL could not be initialised. Returns REDLOCK_ENOMEM or EINVAL. */
static int explain_start(char *error, size_t size)
{
    unsigned long code = ERR_peek_last_error();
    const char *words = ERR_reason_error_string(code);
    int reason = ERR_GET_REASON(code);

    ERR_clear_error(); /* if the program had used OpenSSL before, it would be initialised */
    if (code == 0 || reason == ERR_R_MALLOC_FAILURE)
        return REDLOCK_ENOMEM;
    snprintf(error, size, "TLS: OpenSSL cannot be initialised (%s); check its openssl.cnf",
             words != NULL ? words : "unknown error");
    return REDLOCK_EINVAL;
}

/* Makes sure that the list has a context for the settings. */
int rl_tls_contexts_add(struct rl_tls_context **contexts, const struct rl_mem *mem,
                        const struct rl_log *log, const struct rl_tls_settings *settings,
                        char *error, size_t size)
{
    char why[ERROR_MAX] = "";

    if (rl_tls_contexts_find(*contexts, settings) != NULL)
        return REDLOCK_OK;
    if (!rl_tls_check_environment(why, sizeof why)) {
        snprintf(error, size, "TLS: %s", why);
        return REDLOCK_EINVAL;
    }
    /* Without OPENSSL_INIT_NO_ATEXIT, OpenSSL frees its tables when the process exits, although a
     * thread of this or another client may still use them. */
    if (OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
        return explain_start(error, size);
    struct rl_tls_context *context = rl_alloc(mem, sizeof *context);
    if (context == NULL)
        return REDLOCK_ENOMEM;
    context->mem = mem;
    context->log = log;
    if (rl_node_spec_tls_copy(mem, &context->settings, settings) != 0 ||
        (context->bio = rl_tls_bio_new()) == NULL) {
        free_context(context, false);
        return REDLOCK_ENOMEM;
    }
    take_stamps(settings, context->stamps);
    int result = rl_tls_load(settings, &context->native, why, sizeof why);
    if (result != REDLOCK_OK) {
        if (why[0] != '\0')
            snprintf(error, size, "TLS: %s", why);
        free_context(context, false);
        return result;
    }
    warn_about_key(context, is_key_exposed(settings));
    warn_about_verification(context, *contexts);
    context->next = *contexts;
    *contexts = context;
    return REDLOCK_OK;
}

/* Implements rl_background.run: looks at the files, and reads them if they have changed, or in any
 * case (`forced`). */
static void run(struct rl_background *work)
{
    struct reload *reload = (struct reload *)work;
    struct stamp before[FILES];

    memcpy(before, reload->stamps, sizeof before);
    take_stamps(&reload->settings, reload->stamps);
    reload->changed = memcmp(before, reload->stamps, sizeof before) != 0;
    if (!reload->changed && !reload->forced)
        return;
    reload->exposed = is_key_exposed(&reload->settings);
    reload->result =
        rl_tls_load(&reload->settings, &reload->native, reload->error, sizeof reload->error);
}

/* Implements rl_background.destroy. In a forked child leaks what OpenSSL has allocated. */
static void destroy(struct rl_background *work)
{
    struct reload *reload = (struct reload *)work;
    const struct rl_mem mem = rl_mem_libc();

    if (work->pid == getpid())
        SSL_CTX_free(reload->native);
    rl_node_spec_tls_done(&mem, &reload->settings);
    free(reload);
}

/* Starts a thread that looks at the files. Without memory or threads the files in use stay, and the
 * next connection tries again. */
static void start_reload(struct rl_tls_context *context, int wake_fd, bool forced)
{
    const struct rl_mem mem = rl_mem_libc();
    struct reload *reload = calloc(1, sizeof *reload);

    if (reload == NULL)
        return;
    if (rl_node_spec_tls_copy(&mem, &reload->settings, &context->settings) != 0) {
        free(reload);
        return;
    }
    reload->work.run = run;
    reload->work.destroy = destroy;
    reload->forced = forced;
    memcpy(reload->stamps, context->stamps, sizeof reload->stamps);
    if (rl_background_start(&reload->work, wake_fd))
        context->reload = reload;
}

/* Uses the certificates that a thread has read. */
static void use(struct rl_tls_context *context, struct reload *reload)
{
    SSL_CTX *old = context->native;

    context->native = reload->native;
    reload->native = NULL;
    SSL_CTX_free(old); /* connections that use it have references of their own */
    context->generation++;
    context->doubted = false;
    if (!reload->changed)
        return;
    rl_logf(context->log, REDLOCK_LOG_INFO, "TLS: certificate files have changed and were read");
    warn_about_key(context, reload->exposed);
}

/* Keeps the certificates in use, because a thread could not read others, and logs why. */
static void keep(struct rl_tls_context *context, const struct reload *reload)
{
    const char *why = reload->result == REDLOCK_ENOMEM ? "out of memory" : reload->error;

    if (!reload->changed) {
        rl_logf(context->log, REDLOCK_LOG_ERROR,
                "TLS: certificate files could not be read again, so the earlier ones stay in use: "
                "%s",
                why);
    } else if (reload->result == REDLOCK_EINVAL) {
        rl_logf(context->log, REDLOCK_LOG_ERROR,
                "TLS: certificate files have changed and cannot be used, so the earlier ones stay "
                "in use: %s",
                why);
    } else {
        memset(context->stamps, 0, sizeof context->stamps); /* the next connection tries again */
        rl_logf(context->log, REDLOCK_LOG_ERROR,
                "TLS: certificate files have changed and could not be read, so the earlier ones "
                "stay in use, and the next connection reads them again: %s",
                why);
    }
}

/* Uses the result of a thread that has ended. */
bool rl_tls_context_settle(struct rl_tls_context *context)
{
    struct reload *reload = context->reload;

    if (reload == NULL)
        return true;
    if (!rl_background_is_done(&reload->work))
        return false;
    context->reload = NULL;
    context->proceeds = false;
    memcpy(context->stamps, reload->stamps, sizeof context->stamps);
    if (reload->native != NULL)
        use(context, reload);
    else if (reload->changed || reload->forced)
        keep(context, reload);
    rl_background_drop(&reload->work);
    return true;
}

/* Returns true if the settings name a file, which may change. */
static bool names_files(const struct rl_tls_settings *settings)
{
    return settings->cacert != NULL || settings->cert != NULL || settings->key != NULL;
}

/* Uses the result of a thread that has ended meanwhile, and starts another one if there is
 * something to look at. Returns false if the connection must wait for it. */
bool rl_tls_context_refresh(struct rl_tls_context *context, int wake_fd, bool given_up,
                            uint64_t now_ns)
{
    if (!rl_tls_context_settle(context)) {
        if (given_up && !context->proceeds)
            rl_logf(context->log, REDLOCK_LOG_ERROR,
                    "TLS: looking at the certificate files takes long, so those that were read "
                    "before stay in use until that ends");
        context->proceeds = context->proceeds || given_up;
        return context->proceeds;
    }
    bool named = names_files(&context->settings);
    bool forced = context->doubted && now_ns >= context->next_reread_ns;
    if (!named && !forced)
        return true;
    start_reload(context, wake_fd, forced);
    if (context->reload == NULL)
        return true;
    if (forced)
        context->next_reread_ns = rl_add_sat(now_ns, REREAD_NS);
    context->proceeds = !named; /* the issuers of the system have no file that may have changed */
    return context->proceeds;
}
