/* SPDX-License-Identifier: MIT
 * The certificates of `redlock sandbox --tls`. In a command without TLS, both functions refuse.
 */
#ifndef TOOLS_SANDBOX_TLS_H
#define TOOLS_SANDBOX_TLS_H

/* Returns 0 if this command can make certificates, or EXIT_CONFIG after a message. */
int sandbox_tls_check(void);

/* Makes an issuer and a certificate for 127.0.0.1, ::1 and localhost in the directory of the
 * sandbox: the files ca.crt, server.crt and server.key. The key of the issuer is not kept. Returns
 * 0, or EXIT_SYSTEM after a message. */
int sandbox_tls_make(const char *directory);

#endif
