"""braid report as a user calls it: from a folder to a page, and what it says when there is none."""
import json
import os
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
        self.assertEqual((done.returncode, done.stdout), (0, f"{self.run_folder}/report.html\n"))
        page = (self.run_folder / "report.html").read_text()
        self.assertIn("<h1>my run</h1>", page)
        self.assertEqual(done.stderr, f"braid: {self.run_folder}/metrics.jsonl: 1 unreadable line left out\n")
        self.assertIn("metrics.jsonl: 1 unreadable line left out", page)
        self.assertIn("measured", page)
        self.assertEqual(re.findall(r"(?:src|href)=", page), [])

    def test_the_model_has_a_picture_where_its_vocabulary_is_known(self):
        (self.run_folder / "config.toml").write_text(CONFIG.replace('"gpt2"', '"gpt2"\nvocab = 512'))
        self.assertEqual(braid("report", str(self.run_folder)).returncode, 0)
        page = (self.run_folder / "report.html").read_text()
        self.assertIn("<title>btc,[kmd|kd|kd]c-&gt;bt[kmd|kd|kd]</title>", page)
        self.assertIn("6 layers", page)

    def test_dot_is_a_folder_with_a_name(self):
        self.assertEqual(braid("report", ".", cwd=self.run_folder).returncode, 0)
        self.assertIn("<h1>my run</h1>", (self.run_folder / "report.html").read_text())

    def test_dots_are_a_folder_with_a_name(self):
        (self.run_folder / "step-3").mkdir()
        self.assertEqual(braid("report", "..", cwd=self.run_folder / "step-3").stdout, "../report.html\n")
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

    def page_with(self, fault):
        """The page of a run of which something cannot be read, which is said in it and on standard error."""
        done = braid("report", str(self.run_folder))
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (self.run_folder / "report.html").read_text()
        self.assertIn(f"braid: {self.run_folder}/{fault}", done.stderr)
        self.assertIn(fault, re.sub(r"&quot;", '"', page))
        return page

    def test_a_folder_that_is_no_run_is_refused_with_everything_that_is_missing(self):
        (self.run_folder / "config.toml").unlink()
        (self.run_folder / "metrics.jsonl").unlink()
        said = self.refused(str(self.run_folder))
        self.assertIn("config.toml is missing", said)
        self.assertIn("metrics.jsonl is missing", said)
        self.assertIn("must be the folder of a run", self.refused(str(self.run_folder / "no")))
        self.refused()

    def test_what_is_missing_is_said_on_the_page_and_the_rest_is_there(self):
        (self.run_folder / "config.toml").unlink()
        page = self.page_with("config.toml is missing")
        self.assertIn('<p class="lead">10 parameters \u00b7 step 4</p>', page)
        self.assertIn(">Loss<", page)
        self.assertNotIn("Configuration", page)
        (self.run_folder / "config.toml").write_text(CONFIG)
        (self.run_folder / "metrics.jsonl").unlink()
        page = self.page_with("metrics.jsonl is missing")
        self.assertIn("Configuration", page)
        self.assertIn("The last step", page)

    def test_what_is_broken_is_said_on_the_page_and_the_rest_is_there(self):
        (self.run_folder / "config.toml").write_text("[model]\nfamily = gpt2\n")
        page = self.page_with("config.toml:2:")
        self.assertIn("family = gpt2", page)
        self.assertIn(">Loss<", page)
        must = "must be a trace that braid train wrote; "
        for trace, said in (("{}", f': {must}it has no list of "traceEvents"'), ("\n" + "[" * 100000, f":2: {must}has more than 1000 lists"),
                            ('{"traceEvents":[{"ph":"X"}]}', f': {must}event 1 is not one that braid writes'),
                            ("", f":1: {must}is not JSON: it is empty; the timeline is left out")):
            (self.run_folder / "trace.json").write_text(trace)
            self.assertNotIn("The last step", self.page_with("trace.json" + said))
        for lines in ("hello\n", "", '{"kind":"run","environment":{"a":' + "[" * 500000 + "]" * 500000 + "}}\nx\n"):
            (self.run_folder / "metrics.jsonl").write_text(lines)
            self.page_with("metrics.jsonl")

    def test_what_is_in_the_way_of_a_file_is_said(self):
        for name in ("config.toml", "metrics.jsonl", "trace.json"):
            (self.run_folder / name).unlink()
            (self.run_folder / name).symlink_to(name)
            self.page_with(f"{name}: cannot be looked at: Too many levels of symbolic links")
            (self.run_folder / name).unlink()
            (self.run_folder / name).mkdir()
            self.page_with(f"{name}: is a folder, not a regular file")
            (self.run_folder / name).rmdir()
            os.mkfifo(self.run_folder / name)
            self.page_with(f"{name}: is a pipe, not a regular file")
            (self.run_folder / name).unlink()
            self.setUp()

    def test_a_file_that_no_run_has_written_is_not_read_whole(self):
        for name, said in (("config.toml", "at byte 268435456: has 1073741824 bytes; at most 268435456 are read"),
                           ("trace.json", "at byte 268435456: has 1073741824 bytes; at most 268435456 are read"),
                           ("metrics.jsonl", "at byte 0: a line begins here that has more than 16777216 bytes")):
            with open(self.run_folder / name, "wb") as file:
                file.truncate(1 << 30)
            self.page_with(f"{name}: {said}")
            self.setUp()

    def test_a_path_that_leads_nowhere_is_the_users_to_mend(self):
        loop = self.run_folder / "loop"
        loop.symlink_to("loop")
        for path in (self.run_folder / "config.toml", "/proc/self/mem", ""):
            self.refused(str(path))
        self.assertEqual(braid("report", str(self.run_folder), "--out", str(self.run_folder)).returncode, 3)
        self.assertEqual(braid("report", str(self.run_folder), "--out", str(loop)).returncode, 3)

    def test_what_the_system_refuses_is_no_mistake_of_braid(self):
        loop = self.run_folder / "loop"
        loop.symlink_to("loop")
        for name, code in [("trace.json", 0), ("metrics.jsonl", 0), ("config.toml", 2)]:
            (self.run_folder / name).unlink()
            (self.run_folder / name).symlink_to(loop)
            done = braid("report", str(self.run_folder))
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(name + ": cannot be looked at: Too many levels of symbolic links", done.stderr)
        for run in [loop, self.run_folder / ("n" * 300)]:
            done = braid("report", str(run))
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(f"{run}: cannot be looked at: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
