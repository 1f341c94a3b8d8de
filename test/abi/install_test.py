# SPDX-License-Identifier: MIT
"""README's lines, as they stand: installed into the prefix of the build, the library is found by compilers,
pkg-config and the loader without being told where, and the command runs; the source tree is out of sight.

The prefix (/usr/local) and /etc are not touched: each case sees copies of them, in a mount namespace."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import tree
import tapcase  # found through tree

CC = os.environ.get("CC", "cc")
SERVERS = ("redis-server", "valkey-server", "redis-check-rdb")

# What is installed lies above what is there; /etc (the loader's cache) may be written, in memory. Trees that
# were built from are empty. Then the third line of README.
PREPARE = """
mount -t tmpfs none "$ROOT/memory"
mkdir "$ROOT/memory/upper" "$ROOT/memory/work"
mount -t overlay -o "lowerdir=/etc,upperdir=$ROOT/memory/upper,workdir=$ROOT/memory/work" none /etc
mount -t overlay -o "lowerdir=$ROOT/installed$PREFIX:$PREFIX" none "$PREFIX"
"""
HIDE = """
mount -t tmpfs none "$SOURCE"
test ! -d "$BUILD" || mount -t tmpfs none "$BUILD"
"""
LOADER = "ldconfig\n"


def run(words, **more):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          universal_newlines=True, **more)  # fmt: skip


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="install-")
        cls.addClassCleanup(shutil.rmtree, cls.root)
        os.mkdir(os.path.join(cls.root, "memory"))
        cls.project = os.path.join(cls.root, "project")
        shutil.copytree(os.path.join(tree.SOURCE, "test", "abi", "consumer"), cls.project)
        with open(os.path.join(cls.project, "bill.c"), "w", encoding="utf-8") as file:
            file.write(re.search(r"```c\n(.*?)```", tree.text("README.md"), re.DOTALL).group(1))
        cls.installed = os.path.join(cls.root, "installed")
        done = run(["meson", "install", "-C", tree.BUILD, "--no-rebuild", "--destdir", cls.installed])
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        cls.prefix = cls.find_prefix()
        if cls.inside("true").returncode != 0:
            raise unittest.SkipTest("a copy of the prefix takes root, a mount namespace and overlays")

    @classmethod
    def find_prefix(cls):
        for folder, _, files in os.walk(cls.installed):
            if "redlock" in files and os.path.basename(folder) == "bin":
                return os.path.dirname(folder)[len(cls.installed):]  # fmt: skip
        raise AssertionError("the command is not installed")

    @classmethod
    def inside(cls, script, steps=PREPARE + LOADER + HIDE):
        """Runs the script where all is installed, in a directory of its own."""
        kept = ("LANG", "LC_ALL", "TMPDIR", "HOME")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        paths = [os.path.join(cls.prefix, "bin"), "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        environment.update(ROOT=cls.root, PREFIX=cls.prefix, SOURCE=tree.SOURCE, BUILD=tree.BUILD, CC=CC,
                           PATH=":".join(paths), HOME=cls.root)  # fmt: skip
        words = ["unshare", "-m", "sh", "-e", "-c", f"cd /\n{steps}\ncd {cls.project}\n{script}"]
        return run(words, env=environment, timeout=200)

    def check(self, script):
        done = self.inside(script)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_the_tree_is_out_of_sight(self):
        self.assertEqual(self.check('ls -A "$SOURCE"'), "")
        self.assertFalse(self.root.startswith(tree.SOURCE + "/"))

    def test_the_command_runs(self):
        version = re.search(r"version: '([\d.]+)'", tree.text("meson.build")).group(1)
        told = self.check("command -v redlock; redlock --version; redlock --help")
        self.assertIn(f"{self.prefix}/bin/redlock\nredlock {version} (hiredis ", told)
        self.assertIn("redlock COMMAND --help", told)

    def test_its_manual_and_its_completion(self):
        self.check('test -s "$PREFIX/share/man/man1/redlock.1"')
        told = self.check('bash --norc -c \'. "$PREFIX/share/bash-completion/completions/redlock"; complete -p redlock\'')
        self.assertIn("-F _redlock redlock", told)

    def test_the_command_finds_its_library_by_the_cache_of_the_loader(self):
        """Why README has a third line."""
        if os.path.exists(f"{self.prefix}/bin/redlock"):
            self.skipTest("a redlock is installed on this machine")
        done = self.inside("redlock --version", PREPARE + HIDE)
        self.assertEqual(done.returncode, 127, done.stdout)
        self.assertIn("error while loading shared libraries: libredlock.so", done.stdout)

    def test_locks_by_the_command(self):
        if not any(shutil.which(name) for name in SERVERS):
            self.skipTest("no server program in PATH")
        told = self.check("redlock sandbox -n 3 -- redlock run -n x -- echo under the lock 2>&1")
        self.assertIn("under the lock\n", told)

    def test_shared(self):
        told = self.check("$CC -std=c11 -Wall -Wextra -pedantic -Werror main.c -o shared "
                          "$(pkg-config --cflags --libs redlock)\n./shared\nldd shared")  # fmt: skip
        self.assertIn("REDLOCK_ENOQUORUM", told)
        self.assertRegex(told, rf"libredlock\.so\.\d+ => {self.prefix}/lib")

    def test_static(self):
        told = self.check("$CC -std=c11 -Wall -Wextra -pedantic -Werror main.c -o static -Wl,--as-needed "
                          "-Wl,-Bstatic $(pkg-config --cflags --libs redlock) -Wl,-Bdynamic "
                          "$(pkg-config --libs --static redlock)\n./static\nldd static")  # fmt: skip
        self.assertIn("REDLOCK_ENOQUORUM", told)
        self.assertNotIn("libredlock", told)
        self.assertIn("libhiredis", told)

    def test_each_header_alone(self):
        told = self.check('for header in "$PREFIX"/include/redlock/*.h; do\n'
                          'echo "${header##*/}"\n'
                          'printf "#include <redlock/${header##*/}>\\nextern int one;\\n" >one.c\n'
                          "$CC -std=c99 -Wall -Wextra -pedantic -Werror -fsyntax-only one.c\ndone")  # fmt: skip
        self.assertIn("redlock.h\n", told)

    def test_the_program_of_readme(self):
        """Its lines for the compiler and for the sandbox, too."""
        lines = re.findall(r"^    (cc bill\.c .*|redlock sandbox -- \./bill)$", tree.text("README.md"), re.MULTILINE)
        self.assertEqual(len(lines), 2)
        if not any(shutil.which(name) for name in SERVERS):
            lines.pop()
        told = self.check("\n".join(lines))
        if len(lines) == 2:
            self.assertIn("billing customer 42\n", told)


if __name__ == "__main__":
    tapcase.main()
