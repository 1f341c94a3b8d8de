/* SPDX-License-Identifier: MIT
 * The functions of tls.h for a library without TLS. Addresses with TLS are refused before any of
 * them but rl_node_spec_tls_is_built() and rl_tls_contexts_free() is called. */
#include "node/tls.h"
#include "redlock/redlock.h"

#include <stdio.h>

/* Returns false: this library is built without TLS. */
bool rl_node_spec_tls_is_built(void)
{
    return false;
}

/* Refuses the settings. */
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

struct rl_tls_context *rl_tls_contexts_find(struct rl_tls_context *contexts,
                                            const struct rl_tls_settings *settings)
{
    (void)contexts;
    (void)settings;
    return NULL;
}

void rl_tls_contexts_free(struct rl_tls_context *contexts, bool forked)
{
    (void)contexts;
    (void)forked;
}

bool rl_tls_context_is_current(struct rl_tls_context *context, int wake_fd)
{
    (void)context;
    (void)wake_fd;
    return true;
}

bool rl_tls_context_settle(struct rl_tls_context *context)
{
    (void)context;
    return true;
}

struct rl_tls *rl_tls_open(struct rl_tls_server *server, int fd)
{
    (void)server;
    (void)fd;
    return NULL;
}

void rl_tls_close(struct rl_tls *tls)
{
    (void)tls;
}

void rl_tls_abandon(struct rl_tls *tls)
{
    (void)tls;
}

void rl_tls_server_done(struct rl_tls_server *server)
{
    (void)server;
}

enum rl_tls_result rl_tls_handshake(struct rl_tls *tls)
{
    (void)tls;
    return RL_TLS_FAILED;
}

ssize_t rl_tls_send(struct rl_tls *tls, const char *bytes, size_t len)
{
    (void)tls;
    (void)bytes;
    (void)len;
    return -1;
}

bool rl_tls_flush(struct rl_tls *tls)
{
    (void)tls;
    return false;
}

bool rl_tls_is_held(const struct rl_tls *tls)
{
    (void)tls;
    return false;
}

uint64_t rl_tls_held(const struct rl_tls *tls)
{
    (void)tls;
    return 0;
}

uint64_t rl_tls_tail(const struct rl_tls *tls)
{
    (void)tls;
    return 0;
}

void rl_tls_permit(struct rl_tls *tls, unsigned count)
{
    (void)tls;
    (void)count;
}

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

const char *rl_tls_text(const struct rl_tls *tls)
{
    (void)tls;
    return "";
}

bool rl_tls_is_refused(const struct rl_tls *tls)
{
    (void)tls;
    return false;
}

int64_t rl_tls_expiry_s(const struct rl_tls *tls)
{
    (void)tls;
    return 0;
}
