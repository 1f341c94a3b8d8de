# SPDX-License-Identifier: MIT
"""The reference of the C interface: complete, and readable by man."""

import os
import re
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
SOURCE = os.environ["REDLOCK_SOURCE"]
BUILD = os.environ["REDLOCK_BUILD"]
sys.path[:0] = [os.path.join(SOURCE, "test", "lib"), os.path.join(SOURCE, "docs", "reference")]
import cpp
import declarations
import headers
import pages
import site_html
import tapcase


INCLUDE = os.path.join(SOURCE, "include", "redlock")


class Contracts(unittest.TestCase):
    """What the headers say about each function."""

    reference = headers.Reference(INCLUDE)
    functions = [item for item in reference.items.values() if item.kind == "function"]

    def test_each_exported_function_has_an_entry(self):
        """No symbol of the library is missing."""
        with open(os.path.join(SOURCE, "test", "abi", "symbols.txt"), encoding="utf-8") as file:
            exported = set(re.findall(r"^redlock_\w+", file.read(), re.M))
        self.assertGreater(len(exported), 50)
        self.assertEqual(sorted(exported - set(self.reference.items)), [])

    def test_each_parameter_is_explained(self):
        """A function explains its parameters, itself or by those that all functions have in common."""
        missing = [f"{item.name}: {name}" for item in self.functions
                   for name, text in item.explained(self.reference.blocking_of(item)) if not text]  # fmt: skip
        self.assertEqual(missing, [])

    def test_errors_exist_and_have_a_cause(self):
        """Each error of a contract is one of the library, and has a text of its own or a common one."""
        known = {name.removeprefix("REDLOCK_") for name, _, _ in self.reference.error_texts} | {"OK"}
        wrong = []
        for item in self.functions:
            for names, text in item.errors:
                wrong += [f"{item.name}: {name}" for name in names if name not in known or not text and name not in pages.PLAIN]
        self.assertEqual(wrong, [])

    def test_each_error_is_in_a_contract(self):
        """No error exists that no function returns."""
        returned = {name for item in self.functions for names, text in item.errors for name in names}
        returned |= {name.removeprefix("REDLOCK_") for name, _ in pages.BLOCKING}
        unused = [name for name, _, _ in self.reference.error_texts if name.removeprefix("REDLOCK_") not in returned]
        self.assertEqual(unused, [])

    def test_each_function_says_where_it_may_be_called(self):
        """A contract has a mark or a line about threads, and its page the section THREADS."""
        texts = pages.texts(self.reference, "0", cpp.read(INCLUDE))
        for item in self.functions:
            with self.subTest(name=item.name):
                self.assertEqual((item.mark == "", item.threads == ""), (item.threads != "", item.mark != ""))
                self.assertRegex(texts[f"{item.name}.3"], r"\n\.SH THREADS\n\w.*thread")
        self.assertIn("One thread at a time for each client", texts["redlock_process.3"].partition(".SH THREADS")[2])
        self.assertNotIn("in every mode", texts["redlock_get_fd.3"])

    def test_pages_have_their_own_paragraphs_only(self):
        """What a header says about a group of functions is in the overview, not on the page of the function before it."""
        texts = pages.texts(self.reference, "0", cpp.read(INCLUDE))
        for words, name in (("The macros REDLOCK_VERSION_", "redlock_error_is_retriable"), ("has changed nothing", "redlock_config_error"),
                            ("Quorum groups", "redlock_get_node_stats")):  # fmt: skip
            shown = re.sub(r"\\f[BR]", "", texts["redlock.3"])
            self.assertIn(words, " ".join(shown.replace("\n", " ").split()))
            self.assertNotIn(words, texts[f"{name}.3"])
        self.assertIn("values of the moment", texts["redlock_stats_t.3"])

    def test_constants_have_their_values(self):
        """The overview shows the value of each constant; a page explains the constants that its contract names."""
        texts = pages.texts(self.reference, "0", cpp.read(INCLUDE))
        found = [item for item in self.reference.items.values() if item.kind == "constant"]
        self.assertGreater(len(found), 9)
        for item in found:
            self.assertIn(f".B {item.name} ({item.value})\n", texts["redlock.3"])
        self.assertIn(".SH CONSTANTS\n.TP\n.B REDLOCK_TTL_MS_MIN\n10: shortest TTL", texts["redlock_config_set_max_ttl_ms.3"])
        self.assertIn(".B REDLOCK_TTL_MS_MAX\n86400000: ", texts["redlock_config_set_max_ttl_ms.3"])

    def test_pages_lead_on(self):
        """SEE ALSO names the pages that a reader needs next."""
        texts = pages.texts(self.reference, "0", cpp.read(INCLUDE))
        for name, other in (("lock_fence", "config_set_fence_records"), ("acquire_start", "adapters"), ("acquire", "release"),
                            ("libuv_attach", "config_set_mode"), ("lock_cleanup", "lock_free")):  # fmt: skip
            self.assertIn(f"\\fBredlock_{other}\\fR(3)", texts[f"redlock_{name}.3"].partition(".SH SEE ALSO")[2])
        named = {name for names in [*pages.RELATED.values(), pages.RELATED_OF_ADAPTERS] for name in names}
        self.assertEqual({name for name in [*named, *pages.RELATED] if f"{name}.3" not in texts}, set())

    def test_scoped(self):
        """REDLOCK_SCOPED is in the overview, and has a page with an example."""
        texts = pages.texts(self.reference, "0", cpp.read(INCLUDE))
        self.assertIn(".B REDLOCK_SCOPED(3)\n", texts["redlock.3"])
        self.assertIn("REDLOCK_SCOPED redlock_lock_t *lock = NULL;", texts["REDLOCK_SCOPED.3"].partition(".SH EXAMPLES")[2])


class Results(unittest.TestCase):
    """The section RETURN VALUE of the manual pages: one for each function that returns something."""

    # The functions of type int whose result is a number, and a word that says which.
    NUMBERS = {"redlock_get_fd": "descriptor", "redlock_lock_fd": "descriptor", "redlock_lock_slot": "slot",
               "redlock_shard_of": "index", "redlock_stats_prometheus": "length"}  # fmt: skip
    texts = pages.texts(Contracts.reference, "0", cpp.read(INCLUDE))

    def section(self, name):
        """Returns the text of RETURN VALUE on the page of a function, or ""."""
        found = re.search(r"^\.SH RETURN VALUE\n(.*?)^\.SH ", self.texts[f"{name}.3"], re.M | re.S)
        return re.sub(r"\\f[BR]|\n\.PP", "", found[1]).replace("\n", " ") if found else ""

    def test_each_function_says_what_it_returns(self):
        """A page has the section unless the function returns nothing."""
        for item in Contracts.functions:
            with self.subTest(name=item.name):
                self.assertEqual(self.section(item.name) == "", item.code.startswith("void "))

    def test_functions_of_type_int(self):
        """Those that return numbers say which; the others return 0. Both say that errors are negative."""
        seen = 0
        for item in Contracts.functions:
            if not item.code.startswith("int ") or item.name == "redlock_error_at":
                continue
            seen += 1
            text = self.section(item.name)
            with self.subTest(name=item.name, text=text):
                self.assertIn("the errors below, which are negative constants", text)
                if item.name in self.NUMBERS:
                    self.assertIn(self.NUMBERS[item.name], text)
                    self.assertIn("0 or more on success", text)
                else:
                    self.assertTrue(text.startswith("0 (REDLOCK_OK)"), text)
                    self.assertNotIn("0 or more", text)
        self.assertGreater(seen, 50)

    def test_other_types(self):
        """Functions of other types say what they return, when it is NULL, and how long it lives."""
        for name, words in (("redlock_lock_token", ["the value of its keys", "NULL: lock is NULL.", "Borrowed until"]),
                            ("redlock_lock_remaining_ms", ["in milliseconds", "0: the lock is not held"]),
                            ("redlock_error_at", ["REDLOCK_OK for an index past"]),
                            ("redlock_report_ref", ["NULL if report is NULL", "frees each reference"])):  # fmt: skip
            for word in words:
                self.assertIn(word, self.section(name))

    def test_html_says_the_same(self):
        """The page of HTML has the same text for each function."""
        html = site_html.site(Contracts.reference, "0", cpp.read(INCLUDE))
        for name, word in self.NUMBERS.items():
            part = re.search(rf'<section id="{name}">.*?</section>', html, re.S)[0]
            self.assertRegex(re.sub(r"<.*?>", "", part), rf"Return value.*{word}.*0 or more on success")


class Types(unittest.TestCase):
    """The pages of structs and enums: their members, each with its text."""

    texts = pages.texts(Contracts.reference, "0", cpp.read(INCLUDE))

    def test_errors(self):
        """redlock_error(3) has each error with its number and what it means, and no macro."""
        page = self.texts["redlock_error.3"]
        self.assertNotIn("XX", page)
        self.assertGreater(len(Contracts.reference.meanings()), 15)
        for name, number, text, meaning in Contracts.reference.meanings():
            with self.subTest(name=name):
                self.assertGreater(len(meaning.split()), 3)
                self.assertIn(pages.escape(f"    {name} = {number},"), page)
                self.assertIn(f".B {pages.escape(f'{name} ({number})')}\n{pages.sentence(text)[:1]}", page)
        told = {name for names, _ in Contracts.reference.items["redlock_error"].errors for name in names}
        self.assertEqual(told, {name.removeprefix("REDLOCK_") for name, *_ in Contracts.reference.meanings()})

    def test_members(self):
        """Each member of the header is in the declaration, and each comment in the list."""
        for item in Contracts.reference.items.values():
            if item.kind not in ("struct", "enum") or item.name == "redlock_error":
                continue
            page = self.texts[f"{item.name}.3"]
            code = re.sub(r"/\*.*?\*/", "", item.code, flags=re.S)
            separator = ";" if item.kind == "struct" else ","
            inside = code[code.index("{") + 1 : code.rindex("}")]
            expected = [" ".join(part.split()) for part in re.split(rf"{separator}(?![^()]*\))", inside) if part.strip()]
            with self.subTest(name=item.name):
                self.assertEqual([text.rstrip(separator) for text, _ in declarations.members(item.code)], expected)
                self.assertEqual(len(re.findall(r"^\.TP$", page.partition(".SH CONSTANTS")[0], re.M)), item.code.count("/*"))

    def test_examples(self):
        """The pages of the main functions have an example, which is a part of the program that samples_test.py runs."""
        with open(os.path.join(SOURCE, "docs", "reference", "examples.c"), encoding="utf-8") as file:
            source = file.read().replace("static ", "")
        for name in ("new", "acquire", "release", "extend", "with", "inspect", "kind", "lock_slot", "lock_fence", "lock_check"):
            text, code = pages.EXAMPLES[f"redlock_{name}"]
            self.assertIn(code, source)
            self.assertRegex(text, r"^[A-Z][a-z]+s ")
            self.assertIn(".SH EXAMPLES\n", self.texts[f"redlock_{name}.3"])
        for name in pages.EXAMPLES:
            self.assertIn(f"{name}.3", self.texts)


class Adapters(unittest.TestCase):
    """The adapters for event loops: pages for their functions, and one that shows how to use each."""

    texts = pages.texts(Contracts.reference, "0", cpp.read(INCLUDE))
    loops = ["glib", "libevent", "libuv", "sdevent"]

    def test_each_function_has_a_page(self):
        """attach() and detach() are there, with the header to include; what only the loop calls is not."""
        for loop in self.loops:
            for verb in ("attach", "detach"):
                page = self.texts[f"redlock_{loop}_{verb}.3"]
                self.assertIn(f"#include <redlock/adapters/{loop}.h>", page)
                self.assertIn(".SH PARAMETERS\n.TP\n.B adapter\n", page)
                self.assertIn("redlock_adapters\\fR(3)", page)
            self.assertIn("REDLOCK_EMODE", self.texts[f"redlock_{loop}_attach.3"])
            self.assertIn("Since version 0.2.0.", self.texts[f"redlock_{loop}_attach.3"])
            self.assertIn(f"redlock_{loop}_t.3", self.texts)
            self.assertNotIn(f"redlock_{loop}_ready.3", self.texts)

    def test_overview(self):
        """redlock_adapters(3) has the use of each adapter."""
        page = self.texts["redlock_adapters.3"]
        for loop in self.loops:
            self.assertIn(f"int rc = redlock_{loop}_attach(&adapter, rl, ", page)
        self.assertIn("redlock::asio_adapter adapter(context);", page)
        self.assertIn("int attach(redlock_t *rl)", page)
        self.assertIn(".B context, executor\n", page)
        self.assertIn(".B REDLOCK_EMODE\n", page)
        self.assertNotIn("is_attached", page)

    def test_each_adapter_is_in_it(self):
        """No header of include/redlock/adapters is missing."""
        names = sorted(os.path.splitext(name)[0] for name in os.listdir(os.path.join(INCLUDE, "adapters")))
        self.assertEqual(names, ["asio", *self.loops])


class Cpp(unittest.TestCase):
    """redlock.hpp: what its page contains, and that the reader has understood the header."""

    header = cpp.read(INCLUDE)["redlock.hpp"]
    page = pages.texts(Contracts.reference, "0", cpp.read(INCLUDE))["redlock.hpp.3"]

    def members(self):
        """Returns (name of the class or "", member) of everything that the page documents."""
        return [(entity.name if entity.members else "", member) for entity in self.header.entities
                for member in entity.members or [entity]]  # fmt: skip

    def test_what_is_public_is_there(self):
        """Classes, members and functions, with their declarations as in the header."""
        for declaration in ("class unique_lock", "class client", "class config", "class cancel", "struct options", "class names",
                            "class report", "class error : public std::system_error", "enum class errc : int",
                            "inline constexpr milliseconds forever = milliseconds::max();",
                            "std::string prometheus(const labels &extra = {}) const",
                            "static unique_lock adopt(client &owner, names what, const std::string &token, options how)",
                            "explicit client(const std::string &servers)",
                            "config &set_auth(const std::string &user, const std::string &password)",
                            "bool try_lock_for(const std::chrono::duration<Rep, Period> &duration)",
                            "bool owns_lock(milliseconds margin = milliseconds(0)) const noexcept",
                            "std::string slot_name(const std::string &resource, std::uint32_t slot)",
                            "bool auto_extend = false;", "no_quorum = REDLOCK_ENOQUORUM"):  # fmt: skip
            with self.subTest(declaration=declaration):
                self.assertIn(pages.escape(declaration), self.page)
        self.assertEqual(self.page.count("with(client &owner, names what, options how, Body &&body)"), 1)

    def test_what_is_private_is_not(self):
        """Neither the namespace detail, nor private members, nor the bodies of functions."""
        for word in ("to_ms", "struct listener", "class request", "handle_", "redlock_report_t *report_", "std::exchange", "friend", "detail::"):
            self.assertNotIn(word, self.page)

    def test_each_member_is_explained(self):
        """A member has a description, its own or the function of redlock.h that it calls."""
        seen = 0
        for owner, member in self.members():
            seen += 1
            with self.subTest(owner=owner, member=member.declarations):
                self.assertTrue(member.paragraphs or member.calls)
        self.assertGreater(seen, 80)

    def test_parameters_and_errors(self):
        """What a comment says of a parameter or an error is taken out of it."""
        found = {(owner, member.name): member for owner, member in self.members()}
        node = found["report", "node"]
        self.assertEqual(node.parameters, [(["index"], "below nodes(); else throws errc::invalid_argument")])
        release = found["client", "release_token"]
        self.assertEqual(release.errors, [("errc::lost", "no majority had all names with it")])
        self.assertEqual(found["client", "inspect"].calls, ["redlock_inspect"])
        self.assertEqual(found["config", "set_auth"].calls, ["redlock_config_set_auth"])

    def test_each_called_function_exists(self):
        """The functions of redlock.h that members name are in the reference."""
        calls = {call for _, member in self.members() for call in member.calls}
        self.assertGreater(len(calls), 40)
        self.assertEqual(calls - set(Contracts.reference.items), set())


class Pages(unittest.TestCase):
    """The files that the build has made."""

    folder = os.path.join(BUILD, "docs", "reference")

    def test_pages_are_what_the_headers_say(self):
        """The build has made the pages again after the last change of a header."""
        with open(os.path.join(self.folder, "redlock_extend.3"), encoding="utf-8") as file:
            text = file.read()
        version = re.search(r'"redlock ([\d.]+)"', text)[1]
        self.assertEqual(text, pages.texts(Contracts.reference, version, cpp.read(INCLUDE))["redlock_extend.3"])

    def test_man_reads_each_page(self):
        """man formats each page at 80 columns without a warning."""
        if not shutil.which("man"):
            self.skipTest("no man")
        names = sorted(name for name in os.listdir(self.folder) if name.endswith(".3"))
        self.assertGreater(len(names), 80)
        paths = [os.path.join(self.folder, name) for name in names]
        shown = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8", "MANPAGER": "cat"}, check=False, text=True)  # fmt: skip
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertIn("REDLOCK_ELOST", shown.stdout)
        lines = re.sub(r".\x08", "", shown.stdout).splitlines()
        self.assertEqual([line for line in lines if len(line) > 80], [])
        for name in names:
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                title = re.search(r"^\.TH (\S+) ", file.read(), re.M)[1]
            self.assertTrue(name.removesuffix(".3").endswith(title))
            first = re.compile(rf"{re.escape(title)}\(3\) +(redlock reference +)?{re.escape(title)}\(3\)")
            self.assertTrue(any(map(first.fullmatch, lines)), f"the first line of {name}")

    def test_man_shows_the_overview(self):
        """redlock(3) begins with a program, and then has each function in its group."""
        page = pages.texts(Contracts.reference, "0", cpp.read(INCLUDE))["redlock.3"]
        self.assertLess(page.index("redlock_acquire(client"), page.index(".SS Client"))
        self.assertLess(page.index(".SS Limits"), page.index(".SH THREADS"))
        for item in Contracts.functions:
            self.assertIn(f".B {item.name}(3)\n", page)
        for name in re.findall(r"^\.B (\w+\.md)$", page, re.M):
            self.assertTrue(os.path.exists(os.path.join(SOURCE, "docs", name)), name)

    def test_html_is_well_formed(self):
        """Each element of the page of HTML is closed, in the right order."""
        with open(os.path.join(self.folder, "reference.html"), encoding="utf-8") as file:
            text = file.read()
        opened = []
        for end, name in re.findall(r"<(/?)([a-z]\w*)\b[^>]*>", re.sub(r"<style>.*?</style>", "", text, flags=re.S)):
            if not end:
                opened += [] if name == "meta" else [name]
            else:
                self.assertEqual(opened.pop(), name)
        self.assertEqual(opened, [])

    def test_html_begins_with_what_readers_look_for(self):
        """The smallest program, the index, the errors; the rules come later."""
        html = site_html.site(Contracts.reference, "0", cpp.read(INCLUDE))
        places = [html.index(words) for words in ("int main(void)", "<h2>Index</h2>", "<h2>All errors</h2>", "<h2>Strings</h2>")]
        self.assertEqual(places, sorted(places))
        self.assertIn("Stop the work that the lock protects.", html)

    def test_html_has_each_item_and_no_dead_link(self):
        """The page of HTML has a section for each item, and each link leads to one."""
        with open(os.path.join(self.folder, "reference.html"), encoding="utf-8") as file:
            text = file.read()
        sections = re.findall(r'<section id="([\w:.]+)">', text)
        own = [f"{header.name}:{entity.name}" for header in cpp.read(INCLUDE).values() for entity in header.entities]
        self.assertEqual(sorted(sections), sorted([*Contracts.reference.items, *own]))
        self.assertEqual(sorted(set(re.findall(r'href="#([\w:.]+)"', text)) - set(sections)), [])
        for word in ("prometheus(const labels", "redlock_glib_attach", "asio_adapter"):
            self.assertIn(word, text)


if __name__ == "__main__":
    tapcase.main()
