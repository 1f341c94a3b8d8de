/* SPDX-License-Identifier: MIT
 * Notes whether the server of a node lets this client use lines; line_access.h says what they
 * need. */
#include "node/node_parts.h"
#include "redlock/redlock.h"

#include <string.h>

/* How a server says, somewhere in an error reply, that a script calls a command that it does not
 * have. */
static const char UNKNOWN_COMMAND[] = "Unknown Redis command";
static const char UNKNOWN_VALKEY_COMMAND[] = "Unknown command";

/* Returns whether the text of the reply contains the terminated string `words`. */
static bool contains(const struct rl_reply *reply, const char *words)
{
    return memmem(reply->text, reply->len, words, strlen(words)) != NULL;
}

/* Keeps the cause and the text of the reply with which the server refuses lines. */
static void keep_reason(struct rl_node *node, const struct rl_reply *reply)
{
    static const char unexpected[] = "unexpected reply";
    struct rl_line_access *access = &node->line_access;
    bool is_error = reply->kind == RL_REPLY_ERROR && reply->len > 0;

    access->cause =
        is_error ? (uint8_t)rl_wire_error_cause(reply->text, reply->len) : REDLOCK_CAUSE_PROTOCOL;
    rl_wire_copy_printable(access->text, sizeof access->text, is_error ? reply->text : unexpected,
                           is_error ? reply->len : sizeof unexpected - 1);
}

/* Notes the reply to the SUBSCRIBE to the channel of turns. Keeps the reason of a refusal. */
void rl_line_access_note_channel(struct rl_node *node, bool ok, const struct rl_reply *reply)
{
    node->line_access.deaf = !ok;
    if (!ok)
        keep_reason(node, reply);
}

/* Notes an error reply to a request to a line. Other causes than a missing right or command, such
 * as a full memory, pass. After a refusal the engine reads anew which nodes can keep lines. */
void rl_line_access_note_error(struct rl_node *node, const struct rl_reply *reply)
{
    if (rl_wire_error_cause(reply->text, reply->len) != REDLOCK_CAUSE_NOPERM &&
        !contains(reply, UNKNOWN_COMMAND) && !contains(reply, UNKNOWN_VALKEY_COMMAND))
        return;
    node->line_access.refused = true;
    keep_reason(node, reply);
    rl_node_notify_changed(node);
}

/* Returns whether the server refuses lines to this client. */
bool rl_line_access_is_refused(const struct rl_node *node)
{
    return node->line_access.refused || node->line_access.deaf;
}

/* Allows lines again, because the connection is another one. The last cause stays readable. */
void rl_line_access_reset(struct rl_node *node)
{
    node->line_access.refused = node->line_access.deaf = false;
}
