# SPDX-License-Identifier: MIT
"""usage: build_binding.py DECLARATIONS OPERATION OUTPUT

Writes the C source of the extension module: what cffi makes of the declarations, with operation.c in it. The compiler
checks each declaration against the installed redlock.h.
"""

import sys

from cffi import FFI


def main() -> None:
    """Writes the file that the command line names."""
    declarations, operation, output = sys.argv[1:]
    builder = FFI()
    with open(declarations, encoding="utf-8") as file:
        builder.cdef(file.read())
    with open(operation, encoding="utf-8") as file:
        builder.set_source("libredlock._redlock", file.read())
    builder.emit_c_code(output)


if __name__ == "__main__":
    main()
