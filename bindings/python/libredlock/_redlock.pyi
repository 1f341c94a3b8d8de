# SPDX-License-Identifier: MIT
# The extension module that cffi makes: declarations.h lists its functions.
from typing import Any

ffi: Any
lib: Any
