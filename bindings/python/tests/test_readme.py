# SPDX-License-Identifier: MIT
"""The Python code of README.md runs, with the servers of the sandbox."""

import os
import re
import subprocess
import sys

import pytest

from conftest import PATIENT, SERVERS

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "README.md")


def blocks():
    """Returns the blocks of Python code."""
    with open(README, encoding="utf-8") as file:
        return re.findall(r"^```python\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(blocks())))
def test_code_of_the_readme(servers, number):
    source = blocks()[number]
    assert "a:6379,b:6379,c:6379" in source
    done = subprocess.run([sys.executable, "-c", source.replace("a:6379,b:6379,c:6379", SERVERS)], capture_output=True,
                          text=True, timeout=PATIENT, check=False)  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("billing 42\n", "", 0)
