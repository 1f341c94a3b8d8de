/* SPDX-License-Identifier: MIT
 * How far clock rates may differ, as a user writes it: "1%", "0.5%", "10000ppm".
 */
#ifndef TOOLS_RATES_H
#define TOOLS_RATES_H

#include <stdbool.h>
#include <stdint.h>

#define RATE_HELP "write 1%, 8.5% or 10000ppm, at most 50%"

/* Parts per million, at most 500000. What is finer than one of them is refused. */
bool rate_parse(const char *text, uint32_t *ret_ppm);

#endif
