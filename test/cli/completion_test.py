# SPDX-License-Identifier: MIT
"""The completions for bash, zsh and fish in the real shells. Each shell completes the same command lines; bash and zsh
do it on a terminal. A shell that is not installed is skipped. MANUAL is the directory in which the build has made the
completions."""

import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
from fcntl import ioctl

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "..", "lib"))
sys.path.insert(0, os.path.join(FOLDER, "..", "..", "tools", "manual"))

import model  # noqa: E402 (in tools/manual)
import table  # noqa: E402
import tapcase  # noqa: E402
from world import until  # noqa: E402

MANUAL = os.path.abspath(os.environ["MANUAL"])
COMMANDS = [command.name for command in table.COMMANDS]
BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"

# The first commands of the interactive shell. They send the words that are offered for a line to the file
# $OUT.new, and then rename that to $OUT.
BASH_SETUP = """
bind 'set bell-style none'; bind 'set completion-query-items 0'; bind 'set page-completions off'
source {manual}/redlock
report() {{ _redlock; printf '%s\\n' "${{COMPREPLY[@]}}" >"$OUT.new"; mv "$OUT.new" "$OUT"; COMPREPLY=(); }}
complete -o filenames -F report redlock
"""
ZSH_SETUP = """
bindkey -e; unsetopt autolist automenu beep; fpath=({manual} $fpath)
autoload -Uz compinit; compinit -u -D
compadd() {{
    if [[ -z ${{argv[(r)-[OAD]*]}} ]]; then
        local -a hits; builtin compadd -O hits "$@"; print -rl -- $hits >>"$OUT.new"
    fi
    builtin compadd "$@"
}}
report() {{ : >>"$OUT.new"; mv "$OUT.new" "$OUT"; zle kill-whole-line }}
zle -N report; bindkey '\eR' report; zle -N zle-line-init report
"""


# Words of the cards of `-h` that stand for an argument. A completion shows its description without the argument.
PLACEHOLDER = re.compile(r"\b([A-Z]|CMD|NAME|PATTERN|STRING|TOKEN|LIST|FILE)\b")


class Descriptions(unittest.TestCase):
    """What the completions say of each option and each subcommand."""

    def check(self, text):
        """Fails unless the description makes sense alone: several words, none of which stands for an argument."""
        self.assertIsNone(PLACEHOLDER.search(text), text)
        self.assertGreater(len(text.split()), 1, text)
        self.assertIsNone(re.search(r"[\[\]():]", text), text)

    def test_options(self):
        """Each description has two words or more, and does not refer to anything around it."""
        with open(f"{MANUAL}/redlock.fish", encoding="utf-8") as file:
            fish = re.findall(r"__redlock_options_of (\w+)'.* -d '(.*)'$", file.read(), re.M)
        with open(f"{MANUAL}/_redlock", encoding="utf-8") as file:
            zsh = re.findall(r"\[''(.*?)''\]", file.read())
        self.assertEqual({command for command, _ in fish}, set(COMMANDS))
        self.assertEqual({text.replace("'\\''", "'") for _, text in fish}, {text.replace("'\\''", "'") for text in zsh})
        for _, text in fish:
            with self.subTest(text=text):
                self.check(text)

    def test_subcommands(self):
        """Each description of a subcommand begins with what it does."""
        for command in table.COMMANDS:
            with self.subTest(command=command.name):
                self.check(command.summary)
                self.assertNotIn(command.summary.split()[0], ("a", "the", "temporary"))


class Terminal:
    """An interactive shell on a terminal, in a directory with known files."""

    def __init__(self, words, setup, directory, report=b""):
        self.out = os.path.join(directory, ".offered")
        self.report = report  # keys that end the recording; nothing: completion itself does
        environment = {"PATH": os.environ["PATH"], "HOME": directory, "TERM": "dumb", "OUT": self.out, "LC_ALL": "C.UTF-8"}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execvpe(words[0], words, environment)
        ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 500, 300, 0, 0))
        path = os.path.join(directory, ".setup")
        with open(path, "w", encoding="utf-8") as file:
            file.write(setup.format(manual=MANUAL))
        self.type(f"source {path}{'' if report else f'; : >{self.out}'}\r".encode())
        self.offered()

    def type(self, keys):
        """Sends keys to the shell."""
        os.write(self.terminal, keys)

    def offered(self):
        """Waits for the file with the words, and returns them. Reads what the shell prints meanwhile, so that it does
        not block."""
        os.set_blocking(self.terminal, False)

        def is_there():
            """Returns whether the words are there, and empties the terminal."""
            try:
                os.read(self.terminal, 65536)
            except BlockingIOError:
                pass
            return os.path.exists(self.out)

        until(is_there, "the words that the shell offers")
        with open(self.out, encoding="utf-8") as file:
            words = {word for word in file.read().split("\n") if word}
        os.unlink(self.out)
        return words

    def complete(self, line):
        """Returns what the shell offers for the last word of the line."""
        self.type(line.encode() + b"\t" + self.report)
        words = self.offered()
        if not self.report:
            self.type(b"\x05\x15")  # end of the line, kill it
        return words

    def end(self):
        """Ends the shell."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


class Shell:
    """The cases, which each shell runs. complete(line) returns the words that it offers for the last word."""

    def setUp(self):
        """Makes a directory with files, and starts the shell."""
        self.directory = tempfile.mkdtemp()
        for name in "file-one", "name-file":
            with open(os.path.join(self.directory, name), "w", encoding="utf-8"):
                pass
        self.assertTrue(os.path.exists(os.path.join(MANUAL, "redlock.fish")), "the build has not made the completions")
        if not shutil.which(self.shell):
            self.skipTest(f"no {self.shell}")
        self.start()

    def tearDown(self):
        """Removes the directory."""
        shutil.rmtree(self.directory)

    def check(self, line, expected):
        """Checks that exactly these words are offered."""
        with self.subTest(line=line):
            self.assertEqual(self.complete(line), set(expected))

    def test_subcommands(self):
        """The subcommands are completed, also after `help`."""
        self.check("redlock ", [*COMMANDS, "help"])
        self.check("redlock st", ["status"])
        self.check("redlock help st", ["status"])
        self.check("redlock help ", COMMANDS)

    def test_options_of_each_subcommand(self):
        """Exactly the options of the table are offered, in all spellings."""
        for command in COMMANDS:
            names = [name for option in model.options_of(table, command) for name in option.spellings]
            self.check(f"redlock {command} --", [name for name in names if name.startswith("--")])
            words = self.complete(f"redlock {command} -")
            self.assertLessEqual({name for name in names if not name.startswith("--")}, words, command)
        self.check("redlock --v", ["--version"])

    def test_options_stand_before_and_after_the_name(self):
        """Options are offered until the command begins, and not after a "--"."""
        for line in ("run --fenc", "run name --fenc", "run -w 5s --fenc", "run -s a:1,b:2 name --fenc", "run --wait=5s --fenc"):
            self.check(f"redlock {line}", ["--fence"])
        for line in ("run name cat --fenc", "run name -- --fenc", "run -- --fenc", "status -- --js", "sandbox -- --nod"):
            self.check(f"redlock {line}", [])

    def test_values(self):
        """Values are offered where they are known: words, signals, files. Durations and lock names are not."""
        self.check("redlock run --on-loss ", ["stop", "warn"])
        self.check("redlock run --on-loss=s", ["stop"])
        self.check("redlock run --signal ", "HUP INT QUIT TERM USR1 USR2 KILL".split())
        self.check("redlock run --signal=T", ["TERM"])
        for option in "-f ", "--config ", "--config=", "--pass-file ":
            self.check(f"redlock run {option}fi", ["file-one"])
        self.check("redlock release --token-file na", ["name-file"])
        for line in ("run -w ", "run na", "run -a na", "acquire na", "status na", "status x na", "release na", "sandbox -n "):
            self.check(f"redlock {line}", [])

    def test_words_of_the_command(self):
        """After the name, and after `sandbox`, commands and their files are completed."""
        for line in ("run name", "run name --", "run -- name", "run -w 1s name", "run -s a:6379,b:6379 name", "run -nt 5s name",
                     "run --wait=5s --keep name", "sandbox", "sandbox -n 3", "sandbox --"):  # fmt: skip
            with self.subTest(line=line):
                self.assertIn("basename", self.complete(f"redlock {line} basena"))
                self.assertEqual(self.complete(f"redlock {line} cat fi"), {"file-one"})
        with self.subTest("no words of the command yet"):
            self.assertNotIn("basename", self.complete("redlock run basena"))
            self.assertNotIn("basename", self.complete("redlock run -- basena"))
            self.assertNotIn("basename", self.complete("redlock status name basena"))


class Bash(Shell, unittest.TestCase):
    """bash, without the package bash-completion."""

    shell = "bash"
    setup = BASH_SETUP

    def start(self):
        """Starts the shell."""
        self.terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], self.setup, self.directory)
        self.addCleanup(self.terminal.end)

    def complete(self, line):
        """Types the line and TAB."""
        return self.terminal.complete(line)


class BashCompletion(Bash):
    """bash with the package bash-completion, which completes the words of the command as that command does."""

    setup = f"source {BASH_COMPLETION}\n" + BASH_SETUP

    def start(self):
        """Starts the shell, if the package is installed."""
        if not os.path.exists(BASH_COMPLETION):
            self.skipTest("no bash-completion")
        super().start()


class Zsh(Shell, unittest.TestCase):
    """zsh."""

    shell = "zsh"

    def start(self):
        """Starts the shell."""
        self.terminal = Terminal(["zsh", "-f", "-i"], ZSH_SETUP, self.directory, b"\x1bR")
        self.addCleanup(self.terminal.end)

    def complete(self, line):
        """Types the line and TAB."""
        return self.terminal.complete(line)


class Fish(Shell, unittest.TestCase):
    """fish, whose `complete -C` needs no terminal."""

    shell = "fish"

    def start(self):
        """Does nothing: each completion starts the shell."""

    def complete(self, line):
        """Asks for the completions of the line. Those of --option=VALUE have the option in front of the value."""
        result = subprocess.run(["fish", "-N", "-c", f"source {MANUAL}/redlock.fish; complete -C $argv[1]", line], check=True,
                                cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                                env={"PATH": os.environ["PATH"], "HOME": self.directory, "LC_ALL": "C.UTF-8"})  # fmt: skip
        self.assertEqual(result.stderr, "")
        words = {found.split("\t")[0] for found in result.stdout.splitlines()}
        last = line.split(" ")[-1]
        return {word.partition("=")[2] for word in words} if "=" in last else words


if __name__ == "__main__":
    tapcase.main()
