/* SPDX-License-Identifier: MIT
 * The help texts.
 */
#ifndef TOOLS_HELP_H
#define TOOLS_HELP_H

void help_examples(void); /* `redlock` alone */
void help_overview(void); /* `redlock --help` */
void help_command(const char *name);

#endif
