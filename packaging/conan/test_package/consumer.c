/* SPDX-License-Identifier: MIT
 * A program that uses the package: the header and the library have the same version. */
#include <redlock/redlock.h>
#include <stdio.h>

/* Prints both versions. Returns 0 if they are equal. */
int main(void)
{
    printf("header %s, library %s\n", REDLOCK_VERSION_STRING, redlock_version_string());
    return redlock_version_number() == REDLOCK_VERSION_NUMBER ? 0 : 1;
}
