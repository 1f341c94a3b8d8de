/* SPDX-License-Identifier: MIT
 * Parses the largest difference of clock rates as the user writes it: "1%", "0.5%", "10000ppm".
 */
#ifndef TOOLS_RATES_H
#define TOOLS_RATES_H

#include <stdbool.h>
#include <stdint.h>

/* What a message says about the form of a rate. */
#define RATE_HELP "write 1%, 8.5% or 10000ppm, at most 50%"

/* Parses a rate into parts per million, at most 500000. Returns false if `text` is none or is
 * finer than one part per million. */
bool rate_parse(const char *text, uint32_t *ret_ppm);

#endif
