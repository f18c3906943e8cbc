"""braid simulate as a user calls it, and braid config's page."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import unittest

from braid_binary import BINARY, SOURCE, braid
from simulations import FUSED, Simulations, known_schedules, simulate

KEYS = ["schedule", "ranks", "chunks", "stages", "microbatches", "makespan", "bubble_time", "bubble_fraction",
        "span_bubble", "bubble_rate", "peak_activations", "peak_pending_weight_grads", "weight_versions", "programs"]
WORD = re.compile(r"\d+[FBIW]\d+|\(\d+F\d+;\d+[BI]\d+\)OVERLAP_F_B|\d+UPDATE\d+")


def on_a_terminal(columns, lines, *words, **variables):
    """What braid simulate prints on a terminal of that size."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environment |= {"TERM": "xterm", "LC_ALL": "C.UTF-8"} | variables
    process = subprocess.Popen([BINARY, "simulate", *words], stdout=slave, env=environment)
    os.close(slave)
    printed = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        printed += piece
    os.close(master)
    process.wait(timeout=60)
    return printed.decode().replace("\r\n", "\n")


class Simulate(Simulations):
    def test_json_has_the_published_numbers(self):
        said, = self.said("--schedule", "1f1b", "--ranks", "4", "--microbatches", "8")
        self.assertEqual(list(said), KEYS)
        programs = said.pop("programs")
        self.assertEqual(said, {"schedule": "1f1b", "ranks": 4, "chunks": 1, "stages": 4, "microbatches": 8,
                                "makespan": 33, "bubble_time": 9, "bubble_fraction": 9 / 33, "span_bubble": 9,
                                "bubble_rate": 9 / 33, "peak_activations": [4, 3, 2, 1],
                                "peak_pending_weight_grads": [4, 3, 2, 1], "weight_versions": 1})
        self.assertEqual(programs[3], " ".join(f"3F{i} 3B{i}" for i in range(8)))

    def test_the_summary_is_what_stands_below_the_picture(self):
        for words in (["--schedule", "1f1b"], ["--schedule", "zb-v", "--compare", "dualpipev", "--transfer", "0.5"]):
            words += ["--ranks", "4", "--microbatches", "16"]
            summary = simulate(*words, "--summary").stdout
            self.assertIn("makespan", summary.splitlines()[0] + summary.splitlines()[1])
            picture = simulate(*words).stdout
            self.assertTrue(picture.endswith(summary) and len(picture) > len(summary), picture)

    def test_every_schedule_has_its_json(self):
        for name in known_schedules():
            with self.subTest(name):
                said, = self.said("--schedule", name, "--ranks", "4", "--microbatches", "16")
                self.assertEqual(list(said), KEYS)
                self.assertEqual(said["stages"], said["ranks"] * said["chunks"])
                self.assertEqual(len(said["programs"]), 4)
                forwards = 0
                for program in said["programs"]:
                    for word in program.split(" "):
                        self.assertTrue(WORD.fullmatch(word), word)
                        forwards += "F" in word.replace("_F_", "")
                self.assertEqual(forwards, said["stages"] * 16)
                work = 3 * said["chunks"] * 16  # F = I = W = 1
                self.assertEqual(said["makespan"] - said["bubble_time"], work)
                self.assertAlmostEqual(said["bubble_fraction"], said["bubble_time"] / said["makespan"])

    def test_numbers_of_a_fused_pair_by_hand(self):
        table = self.written("fused.csv", FUSED)
        said, = self.said("--schedule", "file:" + table)
        self.assertEqual(said["schedule"], "file:" + table)
        self.assertEqual((said["ranks"], said["stages"], said["microbatches"]), (2, 2, 2))
        self.assertEqual(said["makespan"], 12)
        self.assertEqual(said["bubble_time"], 6)
        self.assertEqual(said["span_bubble"], 6)
        self.assertEqual(said["bubble_rate"], 0.5)
        self.assertEqual(said["peak_activations"], [2, 1])
        self.assertEqual(said["programs"], ["0F0 (0F1;0B0)OVERLAP_F_B 0B1", "1F0 1B0 1F1 1B1"])
        faster, = self.said("--schedule", "file:" + table, "--overlapped", "2", "--transfer", "0.5")
        self.assertEqual(faster["makespan"], 11 + 4 * 0.5)
        self.assertEqual(faster["bubble_time"], 11 + 4 * 0.5 - 6)

    def test_a_table_is_what_it_was_made_from(self):
        for name in known_schedules():
            with self.subTest(name):
                words = ("--ranks", "4", "--microbatches", "16", "--transfer", "0.25")
                table = self.written(name + ".csv", simulate("--schedule", name, *words, "--csv").stdout)
                made, = self.said("--schedule", name, *words)
                read, = self.said("--schedule", "file:" + table, *words)
                made["schedule"] = read["schedule"]
                self.assertEqual(read, made)

    def test_chunks_are_for_those_that_take_them(self):
        one, looped = self.said("--schedule", "1f1b", "--compare", "interleaved", "--ranks", "2", "--microbatches",
                                "4", "--chunks", "3")
        self.assertEqual((one["chunks"], looped["chunks"]), (1, 3))

    def test_stages_have_times_of_their_own(self):
        times = self.written("times", "# embedding first\n2 1 1\n1 3 0  # and the head\n")
        words = ("--schedule", "gpipe", "--ranks", "2", "--microbatches", "2", "--stage-times", times)
        said, = self.said(*words)
        self.assertEqual(said["makespan"], 13)  # 0F 2, 2; 1F0 2..3, 1F1 4..5, 1B 5..8, 8..11, 0B1 11..13
        refused = self.refused(*words, "--forward", "2", "--ranks", "3")
        self.assertIn("--ranks", refused)
        self.assertIn("--forward = 2", self.refused(*words, "--forward", "2"))
        three = self.refused("--schedule", "1f1b", "--ranks", "3", "--microbatches", "4", "--stage-times", times)
        self.assertIn("has 2 stages, 1f1b has 3", three)
        bad = self.written("bad", "1 2\n1 1 x\n")
        said = self.refused("--schedule", "1f1b", "--ranks", "2", "--microbatches", "4", "--stage-times", bad)
        self.assertIn(bad + ":1", said)
        self.assertIn(bad + ":2", said)

    def test_pictures_and_traces_are_written(self):
        svg, trace = (os.path.join(self.folder, name) for name in ("a.svg", "a.json"))
        done = simulate("--schedule", "file:" + self.written("fused.csv", FUSED), "--svg", svg, "--trace", trace)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(svg) as file:
            self.assertIn("makespan 12 units", file.read())
        with open(trace) as file:
            events = json.load(file)["traceEvents"]
        pair, = [event for event in events if event["ph"] == "X" and "OVERLAP" in event["args"]["action"]]
        self.assertEqual((pair["ts"], pair["dur"]), (4e6, 3e6))

    def test_compared_schedules_stand_side_by_side(self):
        done = simulate("--compare", "gpipe,1f1b,zb-h1", "--ranks", "4", "--microbatches", "8")
        rows = {line[:26].strip(): line[26:].split() for line in done.stdout.splitlines()}
        self.assertEqual(rows["makespan"], ["33", "33", "27"])
        self.assertIn("gpipe, 4 ranks, 8 microbatches", done.stdout)

    # zb-v fills two stages of a rank with what 1f1b does in one: by its own count of stages it would seem twice as slow.
    def test_compared_schedules_run_the_same_model(self):
        words = ("--compare", "1f1b,zb-v,interleaved,dualpipe", "--ranks", "4", "--microbatches", "8")
        all_said = self.said(*words)
        self.assertEqual([said["stage_share"] for said in all_said], [1, 0.5, 0.5, 1])
        for said in all_said:
            self.assertEqual(said["makespan"] - said["bubble_time"], 24, said["schedule"])  # 8 x (F + I + W) on a rank
        self.assertEqual([said["makespan"] for said in all_said[:3]], [33, 25.5, 28.5])
        done = simulate(*words)
        rows = {line[:26].strip(): line[26:].split() for line in done.stdout.splitlines()}
        self.assertEqual(rows["makespan"][:3], ["33", "25.5", "28.5"])
        self.assertIn("All run the same model: with v stages on a rank a stage takes 1/v", done.stdout)
        self.assertNotIn("same model", simulate("--compare", "1f1b,gpipe", *words[2:]).stdout)
        alone, = self.said("--schedule", "zb-v", *words[2:])
        self.assertEqual((alone["makespan"], alone.get("stage_share")), (51, None))

    def test_compared_stages_with_times_of_their_own_keep_them(self):
        times = self.written("times", "1 1 1\n" * 4)
        said, = [said for said in self.said("--compare", "zb-v,interleaved", "--ranks", "2", "--microbatches", "4",
                                            "--stage-times", times) if said["schedule"] == "zb-v"]
        alone, = self.said("--schedule", "zb-v", "--ranks", "2", "--microbatches", "4")
        self.assertEqual((said["makespan"], said.get("stage_share")), (alone["makespan"], None))

    def test_a_dumb_terminal_or_one_without_utf8_gets_plain_text(self):
        words = ["--schedule", "1f1b", "--ranks", "2", "--microbatches", "2"]
        for variables in ({"TERM": "dumb"}, {"TERM": ""}, {"LC_ALL": "C"}, {"LC_ALL": "de_DE.ISO-8859-1"},
                          {"LC_ALL": "", "LC_CTYPE": "", "LANG": "POSIX"}):
            printed = on_a_terminal(70, 24, *words, **variables)
            self.assertIn("rank 1  .  F0", printed)
            self.assertEqual(re.sub("[ -~\n]", "", printed), "", variables)
        self.assertIn("\x1b[", on_a_terminal(70, 24, *words, LC_ALL="", LC_CTYPE="de_DE.utf8"))

    def test_the_first_and_the_last_round_are_drawn(self):
        for columns in (80, 100, 200):
            printed = on_a_terminal(columns, 50, "--schedule", "1f1b", "--ranks", "8", "--microbatches", "32", LC_ALL="C")
            self.assertIn("B0", re.search("rank 0 .*B0.*", printed)[0])
            self.assertRegex(printed, r"(?m)^\.\.\.$")
            for rank in range(8):
                self.assertRegex(printed, rf"(?m)^rank {rank} .*F31.*$")
            self.assertLessEqual(max(map(len, printed.splitlines())), max(columns, 100))

    def test_a_terminal_gets_colour_and_no_more_than_it_holds(self):
        printed = on_a_terminal(70, 24, "--schedule", "1f1b", "--ranks", "64", "--microbatches", "16")
        self.assertIn("\x1b[38;5;", printed)
        lines = re.sub(r"\x1b\[[0-9;]*m", "", printed).splitlines()
        self.assertLess(len(lines), 24)
        self.assertEqual(sum(line == "..." for line in lines), 1)
        grid = [line for line in lines if line.startswith("rank ")]
        self.assertTrue(grid[0].startswith("rank  0") and grid[-1].startswith("rank 63"), grid)
        for line in grid:
            self.assertLessEqual(len(line), 70)

    def test_help_ends_well(self):
        self.assertEqual(braid("simulate", "--help").returncode, 0)
        self.assertIn("simulate", braid("--help").stdout)

    def test_an_unknown_command_is_named(self):
        done = braid("trian")
        self.assertEqual(done.returncode, 2)
        self.assertIn("trian", done.stderr)

    def test_the_configuration_page_is_what_the_command_prints(self):
        done = braid("config", "--markdown")
        self.assertEqual(done.stdout, (SOURCE / "docs" / "configuration.md").read_text())


if __name__ == "__main__":
    unittest.main()
