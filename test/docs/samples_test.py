# SPDX-License-Identifier: MIT
"""Runs the samples of the user documents on five real servers: what a reader copies works, and leaves no process
behind, which the runner looks for.

Programs are compiled with warnings as errors against the library of the build; C and C++ without main() is compiled
only. Shell samples run with `bash -e`, with the command of the build in PATH; programs of the reader's own (./backup.sh,
/usr/local/bin/report) are scripts that do nothing, unless a sample before has made them. The samples of a document run
in its order and in one directory, and what they print is compared with the text that the document shows behind them, inside a `redlock sandbox` of their own: as its command, this program runs again with
the words `inside DOCUMENT`."""

import configparser
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = os.environ["REDLOCK_SOURCE"]
BUILD = os.environ["REDLOCK_BUILD"]
REDLOCK = os.path.join(BUILD, "tools", "redlock")
sys.path[:0] = [os.path.join(SOURCE, "test", "lib")]
import samples
import tapcase

CC = os.environ.get("CC", "cc")
CXX = os.environ.get("CXX", "c++")
SLOW = float(os.environ.get("REDLOCK_TEST_SLOW", "1"))
TIME_LIMIT = 90 * SLOW  # seconds: what takes that long hangs
PROGRAMS = [os.path.join("docs", "reference", name) for name in ("examples.c", "smallest.c")]  # of the manual pages
DOCUMENTS = ["README.md", *sorted(os.path.relpath(path, SOURCE) for path in glob.glob(os.path.join(SOURCE, "docs", "*.md")))]

OF_THE_SANDBOX = ("REDLOCK_SERVERS", "REDLOCK_FENCE_RECORDS", "REDLOCK_SANDBOX_DIR")  # variables that it sets

# Includes before a sample that is no program, what is put around a fragment, and what is put before other code.
INCLUDES = """#include <redlock/redlock.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
"""
FRAGMENT = INCLUDES + """int sample(redlock_t *rl, redlock_lock_t *lock, redlock_config_t *config);
int sample(redlock_t *rl, redlock_lock_t *lock, redlock_config_t *config)
{
    int rc = 0;
    (void)rl; (void)lock; (void)config; (void)rc;
#line %d "%s"
%s
    return rc;
}
"""
PART = INCLUDES + """#line %d "%s"
%s"""
WARNINGS = ["-Wall", "-Wextra", "-Werror"]


# Sends a command to a server of the sandbox, by its number, and prints nothing: for `of` and `setup`.
SERVER = """#!/bin/sh
port=$(cat "$REDLOCK_SANDBOX_DIR/$1/port")
shift
exec "$(command -v redis-cli || command -v valkey-cli)" -p "$port" "$@" >/dev/null
"""


class Failed(Exception):
    """A sample did not do what the document says."""


class Reader:
    """Does what a reader of one document would do, in a directory of its own."""

    def __init__(self, folder):
        self.servers = os.environ["REDLOCK_SERVERS"].split(",")
        self.folder = folder
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        os.symlink(REDLOCK, os.path.join(self.bin, "redlock"))
        with open(os.path.join(self.bin, "server"), "w", encoding="utf-8") as file:
            file.write(SERVER)
            os.chmod(file.fileno(), 0o755)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("REDLOCK_", "LD_")) or k in OF_THE_SANDBOX}
        self.environment = {
            **kept, "HOME": self.folder, "XDG_CONFIG_HOME": self.folder, "CC": CC, "CXX": CXX,
            "PATH": f"{self.bin}:{os.environ['PATH']}", "LD_LIBRARY_PATH": os.path.join(BUILD, "lib"),
            "PKG_CONFIG_PATH": os.path.join(BUILD, "meson-uninstalled"), "PYTHONPATH": self.python_package(), "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8",
        }  # fmt: skip
        self.output = None  # of the last sample, if it was run
        self.skipped = False  # whether the last sample was not run

    def python_package(self):
        """Puts libredlock together from its sources and the module of the build, if there is one. Returns its folder."""
        folder = os.path.join(self.folder, "python")
        modules = glob.glob(os.path.join(BUILD, "test", "bindings", "_redlock*.so"))
        if modules:
            os.makedirs(os.path.join(folder, "libredlock"))
        for path in [*modules, *glob.glob(os.path.join(SOURCE, "bindings", "python", "libredlock", "*.py"))] if modules else []:
            os.symlink(path, os.path.join(folder, "libredlock", os.path.basename(path)))
        return folder

    def run(self, words, sample, text=None):
        """Runs a command in the reader's directory. Raises Failed unless it ends as the sample expects."""
        process = subprocess.Popen(words, cwd=self.folder, env=self.environment, stdin=subprocess.PIPE, start_new_session=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")  # fmt: skip
        try:
            output, _ = process.communicate(text, timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdin.close()
            process.stdout.close()  # a daemon may still have the other end
            raise Failed(f"{sample.place}: does not end within {TIME_LIMIT:.0f} s") from None
        self.output = (self.output or "") + output
        expected = int(sample.directives.get("exit", "0"))
        if process.returncode != expected and "of" not in sample.directives:
            raise Failed(f"{sample.place}: exit status {process.returncode} instead of {expected}\n{output}")
        wanted = sample.directives.get("prints", "")
        if wanted not in output:
            raise Failed(f"{sample.place}: does not print: {wanted}\n{output}")

    def compile(self, sample, name, source, *more):
        """Compiles a C or C++ source with the flags of pkg-config. Raises Failed if the compiler refuses it."""
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        compiler = CXX if sample.language == "cpp" else CC
        standard = ["-std=c++17"] if sample.language == "cpp" else []
        words = [*compiler.split(), *standard, *WARNINGS, f"-I{SOURCE}/include", f"-I{BUILD}/include", path, *more]
        done = subprocess.run(words, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"{sample.place}: does not compile\n{done.stdout}")

    def run_program(self, sample):
        """Compiles a C or C++ sample, and runs it if it has a main function."""
        ending = "cc" if sample.language == "cpp" else "c"
        if "fragment" in sample.directives or not re.search(r"\bmain\(", sample.body):
            around = FRAGMENT if "fragment" in sample.directives else PART
            body = around % (sample.line + 1, sample.document, sample.body)
            self.compile(sample, f"fragment.{ending}", body, "-c", "-o", os.devnull)
            return
        name = sample.directives.get("file", f"sample-{sample.line}.{ending}")
        program = os.path.join(self.folder, name.rpartition(".")[0])
        more = ["-pthread", *(flags_of(sample) if "needs" in sample.directives else [])]
        self.compile(sample, name, sample.body, f"-L{BUILD}/lib", "-lredlock", *more, "-o", program)
        self.run([program], sample)
        if "REDLOCK_SERVERS" in sample.body:
            self.run_without_servers([program], sample)

    def run_without_servers(self, words, sample):
        """Runs a program without REDLOCK_SERVERS, as a reader does who has not set it yet. Raises Failed unless it ends by itself
        and says what is missing."""
        environment = {name: value for name, value in self.environment.items() if name != "REDLOCK_SERVERS"}
        done = subprocess.run(words, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=TIME_LIMIT, check=False)  # fmt: skip
        if not 0 < done.returncode < 126 or not re.search("server address|REDLOCK_SERVERS", done.stdout):
            raise Failed(f"{sample.place}: without REDLOCK_SERVERS: exit status {done.returncode}\n{done.stdout}")

    def shell(self, text):
        """Returns the text of a shell sample with the servers of the test, after making the programs that it names."""
        for name in samples.scripts_named(text) - {"redlock"}:
            path = os.path.join(self.folder, name)
            if not os.path.exists(path) and not re.search(rf"-o (\./)?{re.escape(name)}\b", text):
                with open(path, "w", encoding="utf-8") as file:
                    file.write("#!/bin/sh\nexit 0\n")
                os.chmod(path, 0o755)
        text = text.replace("/usr/local/bin/redlock ", "redlock ")
        return samples.with_servers(text, self.servers).replace("/usr/local/bin/", self.folder + "/")

    def run_crontab(self, sample):
        """Runs the command of each line of a crontab with sh, as cron does."""
        for line in sample.body.splitlines():
            fields = line.split(None, 5)
            if re.match(r"[A-Z_]+ *=", line):
                name, _, value = self.shell(line).partition("=")
                self.environment[name.strip()] = value.strip()
            elif len(fields) == 6 and not line.startswith("#"):
                check_crontab(sample, fields)
                self.run(["sh", "-c", self.shell(fields[5])], sample)

    def compare(self, sample):
        """Compares a block of text with the output of the sample before it, or of its own command. Raises Failed."""
        if "of" in sample.directives:
            self.output = None
            self.run(["bash"], sample, self.shell(sample.directives["of"]))
        elif not sample.follows or self.output is None:
            raise Failed(f"{sample.place}: is the output of what? Say `of COMMAND`, or `unchecked REASON`")
        missing = samples.missing_line(sample.body, self.output)
        if missing is not None:
            raise Failed(f"{sample.place}: not printed, or not in this order: {missing}\n{self.output}")

    def run_sample(self, sample):
        """Runs or parses a sample as its language asks for, and keeps what it prints. Raises Failed."""
        self.output = None
        if "setup" in sample.directives:
            words = ["bash", "-ec", sample.directives["setup"]]
            subprocess.run(words, cwd=self.folder, env=self.environment, check=True, stdout=subprocess.DEVNULL)
        if sample.language in ("c", "cpp"):
            self.run_program(sample)
        elif sample.language == "sh":
            self.run(["bash", "-e"], sample, self.shell(sample.body))
        elif sample.language == "crontab":
            self.run_crontab(sample)
        elif sample.language == "python":
            self.run(["/usr/bin/python3", "-"], sample, samples.with_servers(sample.body, self.servers))
        else:
            parse(sample)


def check_crontab(sample, fields):
    """Checks the five times of a line of a crontab, and that cron does not cut its command at a %."""
    for field, (least, most) in zip(fields, [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]):
        if not all(least <= int(number) <= most for number in re.findall(r"(?<!/)\d+", field)):
            raise Failed(f"{sample.place}: not a time of a crontab: {field}")
    if re.search(r"(?<!\\)%", fields[5]):
        raise Failed(f"{sample.place}: cron takes % as the end of the line")


def verify_unit(sample):
    """Has systemd-analyze check a unit, if it is installed. Programs of the unit are replaced by /bin/true."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        print(f"# {sample.place}: no systemd-analyze: the unit was parsed only", flush=True)
        return
    kind = "timer" if "[Timer]" in sample.body else "service"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"sample-{sample.line}.{kind}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(r"^(Exec\w+=-?)/\S+", r"\1/bin/true", sample.body, flags=re.M))
        done = subprocess.run([analyze, "verify", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if path in done.stdout or done.returncode != 0 and kind == "service":
        raise Failed(f"{sample.place}: systemd-analyze verify: {done.stdout}")


def parse(sample):
    """Parses a sample of a data format. Raises Failed if that is not possible."""
    try:
        if sample.language == "json":
            for line in [sample.body] if sample.body.startswith(("{\n", "[")) else sample.body.splitlines():
                json.loads(line)
        elif sample.language == "ini":
            parser = configparser.RawConfigParser(strict=False, allow_no_value=False, delimiters="=")
            parser.optionxform = str
            parser.read_string(sample.body)
            if re.search(r"^\[(Service|Timer)\]", sample.body, re.M):
                verify_unit(sample)
        elif sample.language == "yaml":
            import yaml  # only the documents with YAML need it

            list(yaml.safe_load_all(sample.body))
    except ValueError as wrong:
        raise Failed(f"{sample.place}: not {sample.language}: {wrong}") from None
    except configparser.Error as wrong:
        raise Failed(f"{sample.place}: not ini: {wrong}") from None


def without_comments(path):
    """Returns the lines of a file of the source tree that are neither empty nor a comment (#)."""
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return "".join(line for line in file if line.strip() and not line.startswith("#"))


def flags_of(sample):
    """Returns the flags of the module of pkg-config that a sample needs, or None if it is not there."""
    done = subprocess.run(["pkg-config", "--cflags", "--libs", sample.directives["needs"]], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)  # fmt: skip
    return done.stdout.split() if done.returncode == 0 else None


def missing_module(reader, sample):
    """Returns the reason why a Python sample cannot run here, or ''. libredlock may be missing only where it is not built."""
    for name in re.findall(r"^(?:import|from) (\w+)", sample.body, re.M):
        if name == "libredlock" and os.path.isdir(os.path.join(reader.folder, "python")):
            continue
        words = ["/usr/bin/python3", "-c", f"import {name}"]
        if subprocess.run(words, env=reader.environment, stderr=subprocess.DEVNULL, check=False).returncode:
            return f"no Python module {name}"
    return ""


def failures_of(reader, sample):
    """Runs a sample and returns the text of its failure in a list, or an empty list. Prints why it is not run."""
    if sample.unknown:
        return [f"{sample.place}: unknown words after `sample:`: {', '.join(sample.unknown)}"]
    if sample.language not in samples.RUN | samples.PARSED | samples.OUTPUT | samples.SHOWN:
        return [f"{sample.place}: unknown language {sample.language or '(none)'}: say how the block is to be run"]
    if "same" in sample.directives and sample.body != without_comments(sample.directives["same"]):
        return [f"{sample.place}: differs from {sample.directives['same']}"]
    if sample.language in samples.SHOWN:
        return []
    reason = sample.directives.get("skip", "")
    if sample.language in samples.OUTPUT and (reader.skipped and sample.follows or "unchecked" in sample.directives):
        return []
    if not reason and sample.language == "python":
        reason = missing_module(reader, sample)
    if "needs" in sample.directives and flags_of(sample) is None:
        reason = f"no {sample.directives['needs']}"
    reader.skipped = bool(reason)
    if reason:
        print(f"# {sample.place}: not run: {reason}", flush=True)
        return []
    try:
        if sample.language in samples.OUTPUT:
            reader.compare(sample)
        else:
            reader.run_sample(sample)
    except Failed as wrong:
        return [str(wrong)]
    return []


def run_inside(document):
    """Runs the samples of a document, in a sandbox. Prints comments of TAP, and then the failures as a list in JSON."""
    with open(os.path.join(SOURCE, document), encoding="utf-8") as file:
        text = file.read()
    found = [samples.Sample(document, 1, "c", text)] if document in PROGRAMS else samples.samples_of(document, text)
    with tempfile.TemporaryDirectory(prefix="samples-") as folder:
        reader = Reader(folder)
        failures = [text for sample in found for text in failures_of(reader, sample)]
    print(json.dumps(failures))


class Samples(unittest.TestCase):
    """One case for each document, see the end of this file."""

    @classmethod
    def setUpClass(cls):
        """Checks what the samples need."""
        if not shutil.which("bash"):
            raise unittest.SkipTest("no bash")

    def run_document(self, document):
        """Runs the samples of a document. Each failure is reported with its line."""
        words = [REDLOCK, "sandbox", "--", sys.executable, os.path.abspath(__file__), "inside", document]
        done = subprocess.run(words, env={k: v for k, v in os.environ.items() if k != "REDIS_URL"}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True, check=False)  # fmt: skip
        *comments, last = done.stdout.splitlines() or [""]
        print("".join(line + "\n" for line in comments), end="", flush=True)
        self.assertEqual(done.returncode, 0, last)
        failures = json.loads(last)
        self.assertEqual(failures, [], "\n" + "\n".join(failures))


def add_cases():
    """Adds a case to Samples for each document with samples."""
    for document in [*DOCUMENTS, *PROGRAMS]:
        name = "test_" + re.sub(r"\W+", "_", document.lower())
        setattr(Samples, name, lambda self, document=document: self.run_document(document))


add_cases()
if __name__ == "__main__":
    if sys.argv[1:2] == ["inside"]:
        run_inside(sys.argv[2])
    else:
        tapcase.main()
