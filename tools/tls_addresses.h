/* SPDX-License-Identifier: MIT
 * What the addresses of the servers and the settings of TLS have to do with each other: which
 * settings have no effect, and which of them names a file.
 */
#ifndef TOOLS_TLS_ADDRESSES_H
#define TOOLS_TLS_ADDRESSES_H

#include "settings.h"

/* Returns where the path of a file comes from about which the library complains with `why`: the
 * setting or the address with its source, such as "option --tls-cacert". A relative path is
 * followed by the directory that it refers to. If `why` is about verify in an address, returns the
 * source of the addresses; NULL if it is about neither. To be freed. */
char *tls_origin(const struct settings *settings, const char *why);

/* Warns about each setting of TLS that no server uses: because no address begins with rediss://, or
 * because all of these have a value of their own. Settings from a source of less precedence than
 * that of the servers draw no warning. */
void tls_warn_unused(const struct settings *settings);

#endif
