/* SPDX-License-Identifier: MIT
 * The functions of tls.h for a library that is built without TLS (-Dtls=disabled, or no OpenSSL was
 * found). Because rl_node_spec_tls_is_built() returns false, the api layer refuses addresses and
 * settings with TLS. So there is no struct rl_tls, and the functions that take one are called with
 * NULL or not at all. */
#include "node/tls.h"
#include "redlock/redlock.h"

#include <stdio.h>

/* Returns false: this library is built without TLS. */
bool rl_node_spec_tls_is_built(void)
{
    return false;
}

/* Refuses the settings: returns REDLOCK_EINVAL, and what to do in `error`. */
int rl_tls_contexts_add(struct rl_tls_context **contexts, const struct rl_mem *mem,
                        const struct rl_log *log, const struct rl_tls_settings *settings,
                        char *error, size_t size)
{
    (void)contexts;
    (void)mem;
    (void)log;
    (void)settings;
    snprintf(error, size, "%s", RL_TLS_MISSING);
    return REDLOCK_EINVAL;
}

/* Returns NULL: no settings were added. */
struct rl_tls_context *rl_tls_contexts_find(struct rl_tls_context *contexts,
                                            const struct rl_tls_settings *settings)
{
    (void)contexts;
    (void)settings;
    return NULL;
}

/* Does nothing: the list is always empty. */
void rl_tls_contexts_free(struct rl_tls_context *contexts, bool forked)
{
    (void)contexts;
    (void)forked;
}

/* Returns true: no files have changed. */
bool rl_tls_context_refresh(struct rl_tls_context *context, int wake_fd, bool given_up,
                            uint64_t now_ns)
{
    (void)context;
    (void)wake_fd;
    (void)given_up;
    (void)now_ns;
    return true;
}

/* Returns true: no thread runs. */
bool rl_tls_context_settle(struct rl_tls_context *context)
{
    (void)context;
    return true;
}

/* Returns NULL, as without memory. */
struct rl_tls *rl_tls_open(struct rl_tls_server *server, int fd)
{
    (void)server;
    (void)fd;
    return NULL;
}

/* Does nothing: there is no state. */
void rl_tls_close(struct rl_tls *tls)
{
    (void)tls;
}

/* Does nothing: there is no state. */
void rl_tls_abandon(struct rl_tls *tls)
{
    (void)tls;
}

/* Does nothing: a server has no session. */
void rl_tls_server_done(struct rl_tls_server *server)
{
    (void)server;
}

/* Returns RL_TLS_FAILED. */
enum rl_tls_result rl_tls_handshake(struct rl_tls *tls)
{
    (void)tls;
    return RL_TLS_FAILED;
}

/* Returns -1: there is no connection to send on. */
ssize_t rl_tls_send(struct rl_tls *tls, const char *bytes, size_t len)
{
    (void)tls;
    (void)bytes;
    (void)len;
    return -1;
}

/* Returns false: there is no connection to send on. */
bool rl_tls_flush(struct rl_tls *tls)
{
    (void)tls;
    return false;
}

/* Returns false: there is no connection. */
bool rl_tls_is_reset(const struct rl_tls *tls)
{
    (void)tls;
    return false;
}

/* Returns false: nothing waits for the kernel. */
bool rl_tls_has_rest(const struct rl_tls *tls)
{
    (void)tls;
    return false;
}

/* Returns 0: there are no records. */
uint64_t rl_tls_held(const struct rl_tls *tls)
{
    (void)tls;
    return 0;
}

/* Returns 0: there are no records. */
uint64_t rl_tls_reach(const struct rl_tls *tls, uint64_t unread)
{
    (void)tls;
    (void)unread;
    return 0;
}

/* Does nothing: nothing can be received. */
void rl_tls_permit(struct rl_tls *tls, unsigned count)
{
    (void)tls;
    (void)count;
}

/* Returns RL_TLS_FAILED: nothing can be received. */
enum rl_tls_result rl_tls_receive(struct rl_tls *tls, char *buffer, size_t size, size_t *ret_len,
                                  bool *ret_more)
{
    (void)tls;
    (void)buffer;
    (void)size;
    *ret_len = 0;
    *ret_more = false;
    return RL_TLS_FAILED;
}

/* Returns "": no connection has failed. */
const char *rl_tls_text(const struct rl_tls *tls)
{
    (void)tls;
    return "";
}

/* Returns false: no server has refused TLS. */
bool rl_tls_is_refused(const struct rl_tls *tls)
{
    (void)tls;
    return false;
}

/* Returns 0: no certificate is known. */
int64_t rl_tls_expiry_s(const struct rl_tls *tls)
{
    (void)tls;
    return 0;
}
