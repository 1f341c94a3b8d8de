/* SPDX-License-Identifier: MIT
 * Learns from replies which optional commands a server supports, and chooses among them. */
#include "node/features.h"

/* Learns from the reply to a request of this form whether the server supports the form's command.
 */
void rl_features_learn(struct rl_features *features, enum rl_form form,
                       const struct rl_result *result)
{
    unsigned bit = rl_forms[form].feature;

    if (bit == 0)
        return;
    features->trying &= ~bit;
    if (result->vote == RL_VOTE_GRANTED || result->vote == RL_VOTE_DENIED)
        features->supported |= bit;
    if (result->vote == RL_VOTE_RESEND) {
        features->missing |= result->forget;
        features->supported &= ~result->forget;
    }
}

/* Notes that a request of this form was sent. A command that is not proven is not sent again before
 * the reply. */
void rl_features_note_sent(struct rl_features *features, enum rl_form form)
{
    features->trying |= rl_forms[form].feature & ~features->supported;
}

/* Returns the form in which RELEASE of one key is sent. A command that is likely but not proven is
 * tried once, and only if the caller awaits the reply (`is_awaited`). */
enum rl_form rl_features_release_form(const struct rl_features *features,
                                      const struct rl_info *info, bool is_awaited)
{
    unsigned wanted = RL_FEATURE_DELEX | RL_FEATURE_DELIFEQ;
    unsigned use = features->supported & wanted;

    if (use == 0 && is_awaited)
        use = rl_info_features(info) & wanted & ~features->missing & ~features->trying;
    if (use == 0)
        return RL_FORM_SHA;
    return use == RL_FEATURE_DELEX ? RL_FORM_DELEX : RL_FORM_DELIFEQ;
}
