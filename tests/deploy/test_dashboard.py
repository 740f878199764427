"""The dashboard asks for nothing that the program doesn't have."""

import json
import re
import unittest

from places import text_of


def known():
    """The names of metrics in the program's text, and those of labels."""
    text = text_of("actors", "metrics.cpp")
    return (set(re.findall(r'"((?:bulkhead|process)_\w+)"', text)),
            set(re.findall(r'\{"(\w+)",', text)) | {"le", "job"})


class Dashboard(unittest.TestCase):
    dashboard = json.loads(text_of("deploy", "grafana", "bulkhead.json"))
    metrics, labels = known()

    def questions(self):
        """Each PromQL expression with where it stands."""
        for panel in self.dashboard["panels"]:
            for target in panel["targets"]:
                yield panel["title"], target["expr"]
        for variable in self.dashboard["templating"]["list"]:
            if variable["type"] == "query":
                yield variable["name"], variable["query"]

    def test_metrics(self):
        self.assertGreater(len(self.metrics), 8)
        for where, question in self.questions():
            asked = re.findall(r"\b(?:bulkhead|process)_\w+", question)
            self.assertTrue(asked, where)
            for name in asked:
                with self.subTest(where, metric=name):
                    base = re.sub(r"_(bucket|sum|count)$", "", name)
                    self.assertIn(base, self.metrics)
                    # A histogram is asked for by its parts, and nothing else has them.
                    histogram = base.endswith("_seconds") and base.startswith("bulkhead_")
                    self.assertEqual(base != name, histogram)

    def test_labels(self):
        for where, question in self.questions():
            used = set(re.findall(r'(\w+)=~?"', question))
            for names in re.findall(r"by \(([^)]*)\)", question):
                used |= {name.strip() for name in names.split(",")}
            with self.subTest(where):
                self.assertLessEqual(used, self.labels)

    def test_counters_are_asked_for_their_increase(self):
        for where, question in self.questions():
            for start in re.finditer(r"\bbulkhead_\w+_(?:total|bucket|count)\b", question):
                if not question.startswith("label_values"):
                    with self.subTest(where):
                        self.assertRegex(question[:start.start()], r"(?:rate|increase)\($")

    def test_what_an_operator_needs_is_shown(self):
        shown = " ".join(question for _, question in self.questions())
        for name in ("runs_total", "queue_seconds", "boot_seconds", "pool_depth", "tool_call_seconds",
                     "upstream_restarts_total", "leaks_swept_total", "sessions", "http_requests_total"):
            self.assertIn("bulkhead_" + name, shown)

    def test_the_panels_are_told_apart_and_do_not_overlap(self):
        panels = self.dashboard["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        cells = [(x, y) for panel in panels for box in [panel["gridPos"]]
                 for x in range(box["x"], box["x"] + box["w"]) for y in range(box["y"], box["y"] + box["h"])]
        self.assertEqual(len(set(cells)), len(cells))
        self.assertLessEqual(max(x for x, _ in cells), 23)
