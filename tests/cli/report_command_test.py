"""braid report as a user calls it: from a folder to a page, and what it says when there is none."""
import json
import pathlib
import re
import tempfile
import unittest

from braid_binary import braid

CONFIG = '[model]\nfamily = "gpt2"\n[mesh]\npipe = 1\ndata = 1\ntensor = 1\n[train]\nsteps = 4\n'
TRACE = {"traceEvents": [
    {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "measured"}},
    {"ph": "M", "name": "thread_name", "pid": 0, "tid": 0, "args": {"name": "rank 0"}},
    {"ph": "X", "name": "forward 0", "pid": 0, "tid": 0, "ts": 0.0, "dur": 5.0, "args": {"action": "0F0"}}]}


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_folder = pathlib.Path(folder.name) / "my run"
        self.run_folder.mkdir()
        lines = [{"kind": "run", "parameters": 10, "bigram_entropy": 2.5, "first_step": 0}]
        lines += [{"kind": "step", "step": step, "loss": 5 - step, "tokens_per_second": 10.0} for step in range(1, 5)]
        (self.run_folder / "config.toml").write_text(CONFIG)
        (self.run_folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)) + '\n{"kind":"st')
        (self.run_folder / "trace.json").write_text(json.dumps(TRACE))

    def refused(self, *words):
        done = braid("report", *words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr

    def test_a_page_is_written_into_the_run(self):
        done = braid("report", str(self.run_folder) + "/")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, f"{self.run_folder}/report.html\n")
        page = (self.run_folder / "report.html").read_text()
        self.assertIn("<h1>my run</h1>", page)
        self.assertIn("1 unreadable line of metrics.jsonl", page)
        self.assertIn("measured", page)
        self.assertEqual(re.findall(r"(?:src|href)=", page), [])

    def test_dot_is_a_folder_with_a_name(self):
        self.assertEqual(braid("report", ".", cwd=self.run_folder).returncode, 0)
        self.assertIn("<h1>my run</h1>", (self.run_folder / "report.html").read_text())

    def test_out_names_the_file(self):
        out = self.run_folder / "page.html"
        self.assertEqual(braid("report", str(self.run_folder), "--out", str(out)).stdout, f"{out}\n")
        self.assertTrue(out.read_text().endswith("</html>\n"))
        self.assertEqual(braid("report", str(self.run_folder), "--out", "/nowhere/page.html").returncode, 3)

    def test_a_run_that_goes_on_has_no_timeline_yet(self):
        (self.run_folder / "trace.json").unlink()
        self.assertEqual(braid("report", str(self.run_folder)).returncode, 0)
        self.assertNotIn("The last step", (self.run_folder / "report.html").read_text())

    def test_everything_that_is_missing_is_said(self):
        (self.run_folder / "config.toml").unlink()
        (self.run_folder / "metrics.jsonl").unlink()
        said = self.refused(str(self.run_folder))
        self.assertIn("config.toml: is missing", said)
        self.assertIn("metrics.jsonl: is missing", said)
        self.assertIn("must be the folder of a run", self.refused(str(self.run_folder / "no")))
        self.refused()

    def test_files_that_are_no_runs_are_named(self):
        (self.run_folder / "trace.json").write_text("{}")
        self.assertIn("trace.json", self.refused(str(self.run_folder)))
        (self.run_folder / "metrics.jsonl").write_text("hello\n")
        self.assertIn("metrics.jsonl", self.refused(str(self.run_folder)))

    def test_what_the_system_refuses_is_no_mistake_of_braid(self):
        loop = self.run_folder / "loop"
        loop.symlink_to("loop")
        for name in ["trace.json", "metrics.jsonl", "config.toml"]:
            (self.run_folder / name).unlink()
            (self.run_folder / name).symlink_to(loop)
            done = braid("report", str(self.run_folder))
            self.assertIn(done.returncode, (2, 3), done.stderr)
            self.assertNotIn("internal error", done.stderr)
            self.assertIn(name, done.stderr)
        for run in [loop, self.run_folder / ("n" * 300)]:
            done = braid("report", str(run))
            self.assertIn(done.returncode, (2, 3), done.stderr)
            self.assertIn(run.name, done.stderr)


if __name__ == "__main__":
    unittest.main()
