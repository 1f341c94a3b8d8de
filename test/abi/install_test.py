# SPDX-License-Identifier: MIT
"""README's lines for installation and use, unchanged: compilers, pkg-config and the loader find the library in the
prefix of the build without further flags, and the command runs. The source tree and the build directory are hidden.

The prefix (/usr/local) and /etc are not changed: each case has copies of them, in a mount namespace."""

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

# PREPARE lays the installed files over those of the prefix, and makes /etc writable in memory, for the cache of the
# loader. HIDE makes the source tree and the build directory empty. LOADER is the third line of README.
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
    """Runs a command and returns it with its output, stderr included."""
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          universal_newlines=True, **more)  # fmt: skip


class Install(unittest.TestCase):
    """Uses the installed product in a namespace where the source tree is hidden."""

    @classmethod
    def setUpClass(cls):
        """Installs the product and copies the consumer program, and the C sample of the README, beside it."""
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
        """Returns the prefix under which the command was installed."""
        for folder, _, files in os.walk(cls.installed):
            if "redlock" in files and os.path.basename(folder) == "bin":
                return os.path.dirname(folder)[len(cls.installed):]  # fmt: skip
        raise AssertionError("the command is not installed")

    @classmethod
    def inside(cls, script, steps=PREPARE + LOADER + HIDE):
        """Runs the script in a mount namespace with the installed files, in the directory of the project."""
        kept = ("LANG", "LC_ALL", "TMPDIR", "HOME")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        paths = [os.path.join(cls.prefix, "bin"), "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        environment.update(ROOT=cls.root, PREFIX=cls.prefix, SOURCE=tree.SOURCE, BUILD=tree.BUILD, CC=CC,
                           PATH=":".join(paths), HOME=cls.root)  # fmt: skip
        words = ["unshare", "-m", "sh", "-e", "-c", f"cd /\n{steps}\ncd {cls.project}\n{script}"]
        return run(words, env=environment, timeout=200)

    def check(self, script):
        """Runs the shell script where the sources are hidden, and returns its output. It must succeed."""
        done = self.inside(script)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_source_tree_is_hidden(self):
        """The control: the source tree cannot be seen there."""
        self.assertEqual(self.check('ls -A "$SOURCE"'), "")
        self.assertFalse(self.root.startswith(tree.SOURCE + "/"))

    def test_command_runs(self):
        """The command is in PATH, and prints its version and its help."""
        version = re.search(r"version: '([\d.]+)'", tree.text("meson.build")).group(1)
        output = self.check("command -v redlock; redlock --version; redlock --help")
        self.assertIn(f"{self.prefix}/bin/redlock\nredlock {version} (hiredis ", output)
        self.assertIn("redlock COMMAND --help", output)

    def test_manual_and_completion_are_installed(self):
        """The manual pages and the completions are there, and that for bash works."""
        self.check('test -s "$PREFIX/share/man/man1/redlock.1" && test -s "$PREFIX/share/man/man1/redlock-run.1"')
        self.check('test -s "$PREFIX/share/zsh/site-functions/_redlock"')
        self.check('test -s "$PREFIX/share/fish/vendor_completions.d/redlock.fish"')
        output = self.check('bash --norc -c \'. "$PREFIX/share/bash-completion/completions/redlock"; complete -p redlock\'')
        self.assertIn("-F _redlock redlock", output)

    def test_command_needs_the_cache_of_the_loader(self):
        """Without README's third line, ldconfig, the command does not start."""
        if os.path.exists(f"{self.prefix}/bin/redlock"):
            self.skipTest("a redlock is installed on this machine")
        done = self.inside("redlock --version", PREPARE + HIDE)
        self.assertEqual(done.returncode, 127, done.stdout)
        self.assertIn("error while loading shared libraries: libredlock.so", done.stdout)

    def test_command_locks_in_a_sandbox(self):
        """The command starts a sandbox and acquires a lock."""
        if not any(shutil.which(name) for name in SERVERS):
            self.skipTest("no server program in PATH")
        output = self.check("redlock sandbox -n 3 -- redlock run -n x -- echo under the lock 2>&1")
        self.assertIn("under the lock\n", output)

    def test_shared(self):
        """A program is built with pkg-config and runs with the shared library."""
        output = self.check("$CC -std=c11 -Wall -Wextra -pedantic -Werror main.c -o shared "
                          "$(pkg-config --cflags --libs redlock)\n./shared\nldd shared")  # fmt: skip
        self.assertIn("REDLOCK_ENOQUORUM", output)
        self.assertRegex(output, rf"libredlock\.so\.\d+ => {self.prefix}/lib")

    def test_static(self):
        """The same with the static library."""
        output = self.check("$CC -std=c11 -Wall -Wextra -pedantic -Werror main.c -o static -Wl,--as-needed "
                          "-Wl,-Bstatic $(pkg-config --cflags --libs redlock) -Wl,-Bdynamic "
                          "$(pkg-config --libs --static redlock)\n./static\nldd static")  # fmt: skip
        self.assertIn("REDLOCK_ENOQUORUM", output)
        self.assertNotIn("libredlock", output)
        self.assertIn("libhiredis", output)

    def test_each_header_compiles_alone(self):
        """Each header compiles without another one before it."""
        output = self.check('for header in "$PREFIX"/include/redlock/*.h; do\n'
                          'echo "${header##*/}"\n'
                          'printf "#include <redlock/${header##*/}>\\nextern int one;\\n" >one.c\n'
                          "$CC -std=c99 -Wall -Wextra -pedantic -Werror -fsyntax-only one.c\ndone")  # fmt: skip
        self.assertIn("redlock.h\n", output)

    def test_program_of_readme(self):
        """Builds and runs the program of README with README's lines for the compiler and for the sandbox."""
        lines = re.findall(r"^(cc bill\.c .*|redlock sandbox -- \./bill)$", tree.text("README.md"), re.MULTILINE)
        self.assertEqual(len(lines), 2)
        if not any(shutil.which(name) for name in SERVERS):
            lines.pop()
        output = self.check("\n".join(lines))
        if len(lines) == 2:
            self.assertIn("billing customer 42\n", output)


if __name__ == "__main__":
    tapcase.main()
