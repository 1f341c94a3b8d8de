/* SPDX-License-Identifier: MIT
 * Keeps which of the optional commands (RL_FEATURE_*) the server of a node supports. An optional
 * command, such as DELEX or DELIFEQ, exists on some servers only. The version in INFO makes a
 * command likely; only the reply to the command proves it. */
#ifndef RL_NODE_FEATURES_H
#define RL_NODE_FEATURES_H

#include "core/protocol.h"
#include "node/info.h"

/* What one connection has shown of its server. Each field is a set of RL_FEATURE_*. Owner:
 * features.c. */
struct rl_features {
    unsigned supported; /* the server has executed a request with this command */
    unsigned missing;   /* the server has refused a request with this command */
    unsigned trying;    /* the command was sent for the first time and has no reply yet */
};

/* Forgets everything, because a new connection was opened. */
static inline void rl_features_reset(struct rl_features *features)
{
    *features = (struct rl_features){.supported = 0};
}

/* Forgets which commands are being tried, because their requests may have been removed unsent. */
static inline void rl_features_retry(struct rl_features *features)
{
    features->trying = 0;
}

/* Returns the set of RL_FEATURE_* that the server has proven to support. */
static inline unsigned rl_features_supported(const struct rl_features *features)
{
    return features->supported;
}

/* Learns from the reply to a request whose form needs the feature `bit`; part of
 * rl_features_learn(). */
void rl_features_learn_bit(struct rl_features *features, unsigned bit,
                           const struct rl_result *result);
/* Learns from the reply to a request of this form, which `result` describes: a grant or a denial
 * proves the command; RESEND shows that it is missing. */
static inline void rl_features_learn(struct rl_features *features, enum rl_form form,
                                     const struct rl_result *result)
{
    if (rl_forms[form].feature != 0)
        rl_features_learn_bit(features, rl_forms[form].feature, result);
}

/* Returns the form in which RELEASE of one key is sent: the server's own command if it supports
 * one, else RL_FORM_SHA. A command that is likely according to `info`, but not proven, is returned
 * only if the caller awaits the reply (`is_awaited`): the fallback then follows in the same round.
 * The caller calls rl_features_note_sent() once the request is in the pipeline. */
static inline enum rl_form rl_features_release_form(const struct rl_features *features,
                                                    const struct rl_info *info, bool is_awaited)
{
    unsigned wanted = RL_FEATURE_DELEX | RL_FEATURE_DELIFEQ;
    unsigned use = features->supported & wanted;

    if (use == 0 && is_awaited)
        use = info->features & wanted & ~features->missing & ~features->trying;
    if (use == 0)
        return RL_FORM_SHA;
    return use == RL_FEATURE_DELEX ? RL_FORM_DELEX : RL_FORM_DELIFEQ;
}

/* Notes that a request of this form was appended to the pipeline. A command that is not proven is
 * not sent again before the reply. */
static inline void rl_features_note_sent(struct rl_features *features, enum rl_form form)
{
    features->trying |= rl_forms[form].feature & ~features->supported;
}

#endif
