# SPDX-License-Identifier: MIT
"""The layers of lib/: a file includes headers and uses symbols of its own layer and lower ones only, and calls
only the system functions that its layer may call. Programs include the public header only."""

import os
import re
import subprocess
import unittest

import tree
import tapcase  # found through tree

CORE_HEADERS = {"redlock/redlock.h", "stdint.h", "stddef.h", "stdbool.h", "string.h", "assert.h"}
HOOKS = re.compile(r"^(__(asan|ubsan|tsan|sanitizer|stack_chk|assert_fail)|_GLOBAL_OFFSET_TABLE_)")
CORE_SYMBOLS = re.compile(r"^((__)?(mem|str)[a-z]*(_chk)?|bcmp|__[a-z]+[sdt]i[234])$")  # and the compiler's own helpers

# Functions that a library must not call in the process of its host, and functions that are easily misused.
NEVER = set(
    "printf vprintf puts putchar fputs fputc fprintf vfprintf fwrite perror psignal stdout stderr syslog"
    " exit _exit _Exit quick_exit atexit signal sigaction system popen fork vfork"
    " strcpy strcat sprintf vsprintf gets strtok rand srand random srandom"
    " localtime gmtime ctime time gettimeofday setenv putenv setlocale sleep usleep nanosleep"
    " gethostbyname inet_ntoa pthread_cancel setitimer alarm raise".split()
)
# Functions, and the only files that may call them. The name of a layer stands for all its files.
ONLY_IN = {
    # A thread in the background may outlive the client and its allocator, so its memory is libc's.
    "malloc calloc realloc reallocarray strdup strndup asprintf": [
        "platform/memory.c", "node/resolve.c", "node/tls_context.c",
    ],
    "clock_gettime clock_nanosleep": ["platform"],
    "getaddrinfo": ["node/resolve.c"],
    "socket connect send sendmsg recv recvmsg setsockopt writev": ["node"],
    # The engine runs in the simulator, too: only engine/io.c connects it to real clocks, sockets and entropy.
    "rl_clock_now rl_clock_wall_us rl_entropy_kernel rl_poller_open rl_poller_arm rl_sockets_init": [
        "platform", "node/socket.c", "node/tls_text.c", "engine/io.c", "api",
    ],
    "pthread_create": ["platform/thread.c"],
}

# The api layer uses the engine, and of the layers below it only these types and pure functions. It parses the addresses
# of nodes and passes them to the engine.
CORE_OF_API = {"core/cause.h", "core/drift.h", "core/fence.h", "core/hash_tag.h", "core/line.h", "core/types.h"}
NODE_SYMBOLS_OF_API = re.compile(r"^rl_node_spec(_|$)")
NODE_STRUCTS = re.compile(r"\bstruct rl_(node|claim|admission|info|tracker|pipeline|sockets?)\b")
ENGINE_FIELDS = re.compile(r"(\b(engine|io)|->lock)(\.|->)\w+")

# The parts of struct rl_node, and the files that may use their fields. Others call functions.
NODE_PARTS = {
    "conn": ("rl_connection", {"node/connection.c", "node/connection.h"}),
    "greeting": ("rl_greeting", {"node/greeting.c", "node/greeting.h"}),
    "detector": ("rl_detector", {"node/failure_detector.c", "node/failure_detector.h"}),
    "trial": ("rl_trial", {"node/trial.c", "node/trial.h"}),
    "heartbeat": ("rl_heartbeat", {"node/heartbeat.c", "node/heartbeat.h"}),
    "eligibility": ("rl_eligibility", {"node/eligibility.c", "node/eligibility.h"}),
    "features": ("rl_features", {"node/features.c", "node/features.h"}),
    "undos": ("rl_undos", {"node/undo.c", "node/undo.h"}),
    "tracker": ("rl_tracker", {"node/tracker.c", "node/tracker.h"}),
    "decoder": ("rl_decoder", {"node/codec.c", "node/codec.h", "node/codec_check.c"}),
    "pipe": ("rl_pipeline", {"node/pipeline.c", "node/pipeline.h"}),
}

# The counters of struct rl_node, and the one file that counts each of them.
COUNTED_IN = {
    "requests": "node/node.c",
    "granted": "node/reply.c",
    "denied": "node/reply.c",
    "errors": "node/reply.c",
    "replies_late": "node/reply.c",
    "rtt_us_hist": "node/reply.c",
    "rtt_us_sum": "node/reply.c",
    "timeouts": "node/failure_detector.c",
    "reconnects": "node/connection.c",
    "notifications": "node/tracker.c",
}


def layer_of(name):
    """Returns the layer of a source file: the folder below lib/."""
    return name.split("/")[1]


def below(layer):
    """Returns the layer and all layers below it."""
    return tree.LAYERS[: tree.LAYERS.index(layer) + 1]


def source_of(path):
    """Returns the source of an object file: build/…/core_wire_error.c.o -> core/wire_error.c."""
    return os.path.basename(path)[: -len(".o")].replace("_", "/", 1)


class Includes(unittest.TestCase):
    """Which file may include which header."""

    def fail_with(self, found):
        """Fails with these lines, if there are any."""
        if found:
            self.fail("\n" + "\n".join(found))

    def test_every_file_of_lib_is_in_a_layer(self):
        """Each file of lib/ is in the folder of a layer."""
        files = tree.files_below("lib", ".c", ".h")
        self.assertTrue(files)
        self.fail_with([name for name in files if layer_of(name) not in tree.LAYERS])

    def test_includes_are_of_lower_layers(self):
        """Includes point to the same layer or down, with the name of the layer in the path."""
        wrong = []
        for name in tree.files_below("lib", ".c", ".h"):
            for line, _, path in tree.includes(name):
                layer = path.split("/")[0]
                if layer in tree.LAYERS and layer not in below(layer_of(name)):
                    wrong.append(f"{name}:{line}: includes {path}, which is above {layer_of(name)}")
                if path.startswith("..") or ("/" not in path and os.path.exists(
                        os.path.join(tree.SOURCE, os.path.dirname(name), path))):  # fmt: skip
                    wrong.append(f"{name}:{line}: includes {path} without its layer's name")
        self.fail_with(wrong)

    def test_api_uses_the_engine_only(self):
        """The api layer uses no headers and structs of nodes, and no field of the engine's structs."""
        wrong = []
        for name in tree.files_below("lib/api", ".c", ".h"):
            for line, _, path in tree.includes(name):
                if path.startswith("node/") or (path.startswith("core/") and path not in CORE_OF_API):
                    wrong.append(f"{name}:{line}: includes {path}, which is below the engine")
            lines = tree.without_comments(tree.text(name)).split("\n")
            for number, line in enumerate(lines, 1):
                for match in [*NODE_STRUCTS.finditer(line), *ENGINE_FIELDS.finditer(line)]:
                    wrong.append(f"{name}:{number}: {match.group(0)} is for the engine to read")
        self.fail_with(wrong)

    def test_parts_of_a_node_are_used_by_their_owner_only(self):
        """Neither a field through the node nor one through a pointer to the part."""
        wrong = []
        for name in tree.files_below("lib", ".c", ".h"):
            text = tree.without_comments(tree.text(name))
            for part, (struct, owners) in NODE_PARTS.items():
                if name[len("lib/"):] in owners:
                    continue
                field = re.compile(rf"(\bnode|\bother|\bfirst|\btracker|\])(->|\.){part}(->|\.)\w+")
                pointers = set(re.findall(rf"\bstruct {struct} \*(\w+)", text))
                through = re.compile(rf"\b({'|'.join(pointers) or '(?!)'})->\w+")
                for match in [*field.finditer(text), *through.finditer(text)]:
                    number = text.count("\n", 0, match.start()) + 1
                    wrong.append(f"{name}:{number}: {match.group(0)} belongs to {', '.join(sorted(owners))}")
        self.fail_with(wrong)

    def test_each_counter_of_a_node_is_counted_in_one_file(self):
        """Each counter of a node is changed only in the file that COUNTED_IN names."""
        wrong, counted = [], set()
        for name in tree.files_below("lib", ".c", ".h"):
            lines = tree.without_comments(tree.text(name)).split("\n")
            for number, line in enumerate(lines, 1):
                for match in re.finditer(r"->counters\.(\w+)", line):
                    counted.add(match.group(1))
                    if name != "lib/" + COUNTED_IN[match.group(1)]:
                        wrong.append(f"{name}:{number}: {match.group(1)} is counted in {COUNTED_IN[match.group(1)]}")
        self.assertEqual(counted, set(COUNTED_IN))
        self.fail_with(wrong)

    def test_core_includes_only_itself_and_five_headers(self):
        """lib/core includes only its own headers and CORE_HEADERS."""
        wrong = []
        for name in tree.files_below("lib/core", ".c", ".h"):
            for line, _, path in tree.includes(name):
                if path not in CORE_HEADERS and not path.startswith("core/"):
                    wrong.append(f"{name}:{line}: core must not include {path}")
        self.fail_with(wrong)

    def test_only_the_codec_includes_hiredis(self):
        """Only lib/node/codec* includes hiredis."""
        wrong = []
        for name in tree.files_below("lib", ".c", ".h"):
            for line, _, path in tree.includes(name):
                if "hiredis" in path and not re.match(r"lib/node/codec[\w]*\.[ch]$", name):
                    wrong.append(f"{name}:{line}: only lib/node/codec* may include {path}")
        self.fail_with(wrong)

    def test_callbacks_are_called_in_one_file(self):
        """Only platform/callback.c calls callbacks, where an exception cannot leave them."""
        wrong = []
        for name in tree.files_below("lib", ".c", ".h"):
            lines = tree.without_comments(tree.text(name)).split("\n")
            calls = [number for number, line in enumerate(lines, 1) if re.search(r"\b(\w+_fn|fn|body)\(", line)]
            if name == "lib/platform/callback.c":
                self.assertEqual(len(calls), 8)
            else:
                wrong += [f"{name}:{number}: {lines[number - 1].strip()}" for number in calls]
        self.fail_with(wrong)

    def test_programs_include_only_the_public_header(self):
        """tools, examples and bench include only the public header and their own ones."""
        wrong = []
        for folder in ("tools", "examples", "bench"):
            for name in tree.files_below(folder, ".c", ".h"):
                for line, _, path in tree.includes(name):
                    own = os.path.normpath(os.path.join(os.path.dirname(name), path))
                    is_own = own.startswith(folder + "/") and os.path.isfile(os.path.join(tree.SOURCE, own))
                    if not is_own and self.is_ours(path) or own.startswith(("lib/", "include/")):
                        wrong.append(f"{name}:{line}: includes {path}, which is not public")
        self.fail_with(wrong)

    @staticmethod
    def is_ours(path):
        """Returns whether the path is a header of this project other than the public one."""
        return path != "redlock/redlock.h" and (
            os.path.exists(os.path.join(tree.SOURCE, "lib", path))
            or os.path.exists(os.path.join(tree.SOURCE, "include", path))
            or os.path.exists(os.path.join(tree.BUILD, "include", path))
        )

    def test_public_headers_include_only_c99_headers_and_each_other(self):
        """Public headers need only C99. Adapters also include the event loop that they are for."""
        names = [name for name in tree.files_below("include", ".h") if "/adapters/" not in name]
        allowed = {"stdbool.h", "stddef.h", "stdint.h", "string.h"}
        allowed |= {os.path.relpath(name, "include") for name in names} | {"redlock/version.h"}
        self.assertIn("include/redlock/redlock.h", names)
        for name in names:
            self.assertEqual({path for _, _, path in tree.includes(name)} - allowed, set(), name)


class Symbols(unittest.TestCase):
    """Which object file may use which symbol."""

    def setUp(self):
        """Finds the object files of the library."""
        self.objects = tree.objects()

    def fail_with(self, found):
        """Fails with these lines, if there are any."""
        if found:
            self.fail("\n" + "\n".join(found))

    def test_every_layer_is_built(self):
        """Each source of lib/ is compiled into the library."""
        for layer in tree.LAYERS:
            built = {source_of(path) for path in self.objects[layer]}
            written = {name[len("lib/"):] for name in tree.files_below(f"lib/{layer}", ".c")}
            self.assertTrue(written, layer)
            self.assertEqual(written - built - self.without(built), set(), "written, but not in lib/meson.build")

    @staticmethod
    def without(built):
        """Returns the sources that this build has no use for: those with TLS or those without."""
        with_tls = {"node/tls.c", "node/tls_context.c", "node/tls_error.c", "node/tls_file.c", "node/tls_text.c"}
        return {"node/tls_without.c"} if with_tls & built else with_tls

    def test_core_needs_nothing_but_memory_and_string_functions(self):
        """lib/core calls nothing but itself and functions on memory and strings."""
        paths = self.objects["core"]
        own = set().union(*map(tree.defined_globally, paths))
        wrong = []
        for path in paths:
            for name in sorted(tree.undefined(path) - own):
                if not CORE_SYMBOLS.match(name) and not HOOKS.match(name):
                    wrong.append(f"{source_of(path)}: uses {name}")
        self.fail_with(wrong)

    def test_symbols_are_of_lower_layers(self):
        """Each layer calls only functions of its own layer and of those below."""
        defined = {
            layer: set().union(*map(tree.defined_globally, self.objects[layer]))
            for layer in tree.LAYERS
        }
        everywhere = set().union(*defined.values())
        wrong = []
        for layer in tree.LAYERS:
            reachable = set().union(*(defined[lower] for lower in below(layer)))
            for path in self.objects[layer]:
                for name in sorted(tree.undefined(path) & (everywhere - reachable)):
                    wrong.append(f"{source_of(path)}: uses {name}, which is above {layer}")
        self.fail_with(wrong)

    def test_api_calls_no_function_of_a_node(self):
        """lib/api calls no function of lib/node, except those in NODE_SYMBOLS_OF_API."""
        nodes = set().union(*map(tree.defined_globally, self.objects["node"]))
        wrong = []
        for path in self.objects["api"]:
            for name in sorted(tree.undefined(path) & nodes):
                if not NODE_SYMBOLS_OF_API.match(name):
                    wrong.append(f"{source_of(path)}: uses {name}, which is for the engine to call")
        self.fail_with(wrong)

    def test_library_does_not_print_exit_or_handle_signals(self):
        """The library calls no function in NEVER."""
        wrong = []
        for layer in tree.LAYERS:
            for path in self.objects[layer]:
                plain = {re.sub(r"^__|_chk$", "", name) for name in tree.undefined(path)}
                for name in sorted(plain & NEVER):
                    wrong.append(f"{source_of(path)}: uses {name}")
        self.fail_with(wrong)

    def test_system_calls_are_in_their_files(self):
        """The functions in ONLY_IN are called only in the files or layers that it names."""
        wrong = []
        for names, places in ONLY_IN.items():
            for layer in tree.LAYERS:
                for path in self.objects[layer]:
                    if layer in places or source_of(path) in places:
                        continue
                    for name in sorted(tree.undefined(path) & set(names.split())):
                        wrong.append(f"{source_of(path)}: {name} belongs to {', '.join(places)}")
        self.fail_with(wrong)

    def test_no_writable_globals(self):
        """A pointer table that the loader relocates is not writable afterwards and does not count."""
        wrong = []
        for layer in tree.LAYERS:
            tables = subprocess.run(["objdump", "-t", *self.objects[layer]], stdout=subprocess.PIPE, check=True,
                                    universal_newlines=True).stdout  # fmt: skip
            tables = re.split(r"^\S.*: +file format .*$", tables, flags=re.MULTILINE)[1:]  # in the order of the files
            self.assertEqual(len(tables), len(self.objects[layer]))
            for path, table in zip(self.objects[layer], tables):
                for line in table.split("\n"):
                    match = re.search(r" (\.t?bss|\.t?data)(?!\.rel)\S*\s+\S+\s+(?:\.hidden\s+)?(\S+)$", line)
                    if match and not match.group(2).startswith(".") and (source_of(path), match.group(2)) not in GLOBALS:
                        wrong.append(f"{source_of(path)}: writable global {match.group(2)}")
        self.fail_with(wrong)


# The allowed ones, each with its reason.
GLOBALS = {
    ("node/codec.c", "reply_functions"),  # never written; hiredis takes a pointer to non-const
}


if __name__ == "__main__":
    tapcase.main()
