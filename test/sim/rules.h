/* SPDX-License-Identifier: MIT
 * The switches of the rules, and their names. */
#ifndef SIM_RULES_H
#define SIM_RULES_H

#include "core/rule.h"

const char *sim_rule_name(enum rl_rule rule);
/* -1: there is none. */
int sim_rule_find(const char *name);

#endif
