/* SPDX-License-Identifier: MIT
 * Learns from replies which optional commands a server supports. */
#include "node/features.h"

/* Learns from the reply to a request whose form needs the feature `bit` whether the server supports
 * the form's command. */
void rl_features_learn_bit(struct rl_features *features, unsigned bit,
                           const struct rl_result *result)
{
    features->trying &= ~bit;
    if (result->vote == RL_VOTE_GRANTED || result->vote == RL_VOTE_DENIED)
        features->supported |= bit;
    if (result->vote == RL_VOTE_RESEND) {
        features->missing |= result->forget;
        features->supported &= ~result->forget;
    }
}
