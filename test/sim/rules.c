/* SPDX-License-Identifier: MIT
 * The switches of the rules, and their names. Only in the build that can switch them. */
#include "rules.h"

#include <string.h>

bool rl_rules_off[RL_RULE_COUNT];

#define NAME_OF(name) #name,
static const char *const names[RL_RULE_COUNT] = {RL_RULES(NAME_OF)};

const char *sim_rule_name(enum rl_rule rule)
{
    return names[rule];
}

int sim_rule_find(const char *name)
{
    for (int i = 0; i < RL_RULE_COUNT; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    return -1;
}
