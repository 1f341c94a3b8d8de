# SPDX-License-Identifier: MIT
"""The alarm rules and the dashboard in examples/monitoring use only figures and labels that exist: those that the library,
`redlock run` and `redlock nodes` write here. promtool, if it is there, checks the rules, runs their tests and parses
the queries of the dashboard."""

import json
import os
import re
import tempfile
import unittest

import yaml

from support import REDLOCK, SOURCE, example, run
import prometheus  # found through support
import tapcase  # found through support

FOLDER = os.path.join(SOURCE, "examples", "monitoring")
NOBODY_THERE = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"
# Labels that Prometheus adds when it reads the figures.
FROM_PROMETHEUS = {"instance", "job"}


def content(name):
    """Returns the text of a file of examples/monitoring."""
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def rules():
    """Returns all rules, as dicts."""
    return [rule for group in yaml.safe_load(content("redlock.rules.yml"))["groups"] for rule in group["rules"]]


def panels():
    """Returns the panels of the dashboard that show figures."""
    return [panel for panel in json.loads(content("dashboard.json"))["panels"] if panel["type"] != "row"]


def dashboard_queries():
    """Returns the queries of the dashboard, without Grafana's variables."""
    queries = [target["expr"] for panel in panels() for target in panel["targets"]]
    return [query.replace("$__rate_interval", "5m").replace("$instance", ".*") for query in queries]


def written_figures():
    """Returns {name: {label: values}} of all figures that exist; the labels of a name are those of all its samples."""
    texts = [example("metrics").stdout, example("metrics", REDLOCK_SERVERS=NOBODY_THERE).stdout]
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "f.prom")
        copy = os.path.join(folder, "copy")
        script = f"until grep -q running {file}; do :; done; cp {file} {copy}"
        for command in (["run", "--metrics-file", file, "t:monitored", "--", "sh", "-c", script],
                        ["nodes", "--metrics-file", file],
                        ["run", "--metrics-file", file, "t:monitored", "--", "true"]):  # fmt: skip
            if os.path.exists(file):
                with open(file, encoding="utf-8") as text:
                    texts.append(text.read())
            done = run([REDLOCK, *command])
            if done.returncode != 0:
                raise AssertionError(done.stderr)
        for name in (file, copy):
            with open(name, encoding="utf-8") as text:
                texts.append(text.read())
    found = {}
    for text in texts:
        for family in prometheus.parse(text).values():
            found.setdefault(family.name, {})
            for name, labels, _ in family.samples:
                for label, value in labels.items():
                    found.setdefault(name, {}).setdefault(label, set()).add(value)
    return found


class Monitoring(unittest.TestCase):
    """The files of examples/monitoring."""

    @classmethod
    def setUpClass(cls):
        """Has all figures written once."""
        cls.figures = written_figures()

    def check_queries(self, queries):
        """Fails if a query names a figure that does not exist, or matches a label that it does not have."""
        seen = set()
        for query in queries:
            for name, selector in re.findall(r"\b(redlock_\w+)\s*(?:\{([^}]*)\})?", query):
                seen.add(name)
                self.assertIn(name, self.figures, query)
                for label in re.findall(r"(\w+)\s*[=!]~?", selector):
                    self.assertIn(label, {*self.figures[name], *FROM_PROMETHEUS}, query)
        return seen

    def test_rules_name_what_exists(self):
        """Names and labels of the rules exist, and each rule is complete."""
        queries = [rule["expr"] for rule in rules()]
        self.assertGreater(len(self.check_queries(queries)), 12)
        for rule in rules():
            self.assertIn(rule["labels"]["severity"], ("warning", "critical"))
            self.assertEqual(set(rule["annotations"]), {"summary", "description"})

    def test_values_of_labels_exist(self):
        """The results that rules look for are among those that the library and the command write."""
        results = self.figures["redlock_acquisitions_total"]["result"]
        of_run = set()
        with open(os.path.join(SOURCE, "tools", "run_figures.c"), encoding="utf-8") as file:
            of_run = set(re.findall(r'\[RUN_\w+\] = "(\w+)"', file.read()))
        self.assertGreater(len(of_run), 5)
        for rule in rules():
            for name, _, values in re.findall(r'(redlock_\w+)\{result(=~?)"([^"]*)"', rule["expr"]):
                allowed = {"redlock_acquisitions_total": results, "redlock_run_result": of_run}.get(name)
                if allowed is not None:
                    self.assertLessEqual(set(values.split("|")), allowed, rule["expr"])

    def test_each_rule_has_a_test(self):
        """The tests of the rules raise each alarm."""
        tests = yaml.safe_load(content("redlock.rules.test.yml"))["tests"]
        raised = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case["exp_alerts"]}
        self.assertEqual(raised, {rule["alert"] for rule in rules()})

    def test_dashboard_names_what_exists(self):
        """Names and labels of the dashboard exist."""
        self.assertGreater(len(self.check_queries(dashboard_queries())), 25)
        variables = json.loads(content("dashboard.json"))["templating"]["list"]
        self.check_queries([variable["definition"] for variable in variables if "definition" in variable])

    def test_dashboard_is_laid_out(self):
        """Panels have numbers and texts of their own, fit into the 24 columns, and do not overlap."""
        everything = json.loads(content("dashboard.json"))["panels"]
        self.assertEqual(len({panel["id"] for panel in everything}), len(everything))
        cells = set()
        for panel in everything:
            place = panel["gridPos"]
            mine = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                    for y in range(place["y"], place["y"] + place["h"])}  # fmt: skip
            self.assertFalse(mine & cells, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            cells |= mine
        for panel in panels():
            self.assertTrue(panel["title"] and panel["description"])

    def test_documents_name_what_exists(self):
        """So do the tables of the operator's document."""
        with open(os.path.join(SOURCE, "docs", "operations.md"), encoding="utf-8") as file:
            section = re.search(r"^## Monitoring\n(.*?)^## ", file.read(), re.MULTILINE | re.DOTALL).group(1)
        names = set(re.findall(r"`(redlock_[a-z_]+)(?:\{[^`]*\})?`", section))
        self.assertGreater(len(names), 5)
        self.assertEqual(names - set(self.figures), set())

    def test_prometheus_accepts_rules_and_queries(self):
        """promtool checks the rules, runs their tests, and parses the queries of the dashboard as rules."""
        found = prometheus.promtool("check", "rules", "redlock.rules.yml", cwd=FOLDER)
        if found is None:
            self.skipTest("no promtool (Debian: prometheus)")
        self.assertEqual(found, "")
        self.assertEqual(prometheus.promtool("test", "rules", "redlock.rules.test.yml", cwd=FOLDER), "")
        queries = [{"record": f"q:{number}", "expr": query} for number, query in enumerate(dashboard_queries())]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            yaml.safe_dump({"groups": [{"name": "dashboard", "rules": queries}]}, file)
            file.flush()
            self.assertEqual(prometheus.promtool("check", "rules", file.name), "")


if __name__ == "__main__":
    tapcase.main()
