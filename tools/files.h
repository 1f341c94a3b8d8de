/* SPDX-License-Identifier: MIT
 * Removes a directory with all in it, without following links out of it.
 */
#ifndef TOOLS_FILES_H
#define TOOLS_FILES_H

void remove_tree(const char *directory);

#endif
