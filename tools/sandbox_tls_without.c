/* SPDX-License-Identifier: MIT
 * The functions of sandbox_tls.h for a command without TLS.
 */
#include "exits.h"
#include "sandbox_tls.h"
#include "say.h"

/* Refuses. */
int sandbox_tls_check(void)
{
    say(SAY_ERROR, "sandbox: --tls: this command was built without TLS; build it with "
                   "-Dtls=enabled, or leave --tls out");
    return EXIT_CONFIG;
}

/* Refuses. */
int sandbox_tls_make(const char *directory)
{
    (void)directory;
    return sandbox_tls_check();
}
