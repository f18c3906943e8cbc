"""What braid simulate refuses, and how it says so."""
import json
import os
import unittest

from simulations import FUSED, Simulations, known_schedules, simulate


class SimulateRefusals(Simulations):
    def test_a_table_must_have_the_numbers_given(self):
        table = self.written("fused.csv", FUSED)
        said = self.refused("--schedule", "file:" + table, "--ranks", "3", "--microbatches", "4", "--chunks", "2")
        for option in ("--ranks = 3", "--microbatches = 4", "--chunks = 2"):
            self.assertIn(option, said)
        self.assertIn("cannot be read", self.refused("--schedule", "file:/nowhere/table.csv"))
        os.symlink("loop", os.path.join(self.folder, "loop"))
        for path, why in ((self.folder, "is a folder"), (self.folder + "/loop", "symbolic links"),
                          ("/" + "long" * 100, "too long"), ("/dev/zero", "not a regular file")):
            self.assertIn(why, self.refused("--schedule", "file:" + path))
            self.assertIn(why, self.refused("--schedule", "zb-v", "--ranks", "1", "--microbatches", "2",
                                            "--stage-times", path))
        huge = self.refused("--schedule", "file:" + self.written("huge.csv", "0F0," + "x" * 2000000 + ",0\0F1\n"))
        self.assertLess(len(huge), 1000)
        self.assertIn("row 1, column 2 = xxx", huge)
        self.assertIn("row 1, column 3", huge)
        for table, why in (("\n" * 3000000, "rows"), ("0F20000000\n", "a microbatch beyond"), ("0F2000000000\n", "does not fit"),
                           ("100000F0,0F1000000\n", "too few for 100001 stages and 1000001 microbatches")):
            self.assertIn(why, self.refused("--schedule", "file:" + self.written("wide.csv", table + "0F0\n")))
        for numbers in (("2000000000", "2000000000"), ("4", "2000000000"), ("100000", "100000")):
            self.assertIn("ranks x chunks x microbatches",
                          self.refused("--schedule", "1f1b", "--ranks", numbers[0], "--microbatches", numbers[1]))
        many = ["--schedule", "1f1b", "--ranks", "4096", "--microbatches", "4097"]
        self.assertIn("at or below 16777216, or 67108864 with --summary; nearest valid is 4096", self.refused(*many))
        self.assertIn("at or below 16777216, or", self.refused(*many, "--json", "--svg", self.folder + "/drawn.svg"))
        self.assertIn("at or below 67108864; nearest", self.refused(*many[:-1], "100000", "--json"))
        bad = self.written("bad.csv", "0F0,zap\n0F0,0X1\n")
        said = self.refused("--schedule", "file:" + bad)
        for cell in ("row 1, column 2", "row 2, column 1", "row 2, column 2"):
            self.assertIn(cell, said)

    def test_an_unsound_table_is_drawn_with_its_faults(self):
        said = self.refused("--schedule", "file:" + self.written("late.csv", "0F0,0I0,0F1,0W0,0B1\n1F1,1F0,1B0,1B1\n"))
        self.assertIn(">0I0<", said)
        self.assertIn("0I0: never runs", said)
        self.assertIn("is not a sound schedule", said)
        said = self.refused("--schedule", "file:" + self.written("w.csv", "0F0,(0F1;0B0)OVERLAP_F_B,0W1,0I1\n"))
        self.assertIn(">0W1<", said)

    def test_rendezvous_sends_that_never_meet_are_drawn(self):
        said = self.refused("--schedule", "1f1b", "--ranks", "2", "--microbatches", "4", "--sends", "rendezvous")
        self.assertIn(">0SEND_F1<", said)
        self.assertIn("--sends = rendezvous", said)
        done = simulate("--schedule", "gpipe", "--ranks", "2", "--microbatches", "4", "--sends", "rendezvous")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_everything_wrong_is_said_at_once(self):
        done = self.refused("--schedule", "1f1bb", "--ranks", "0", "--microbatches", "8")
        self.assertIn("1f1b", done)
        self.assertIn("--ranks", done)
        self.assertEqual(len(done.strip().splitlines()), 2, done)
        said = self.refused("--schedule", "gpip", "--compare", "1f1b,zb", "--microbatches", "x", "--forward", "-1",
                            "--overlapped", "soon", "--sends", "often", "--jsn", "--json", "--csv", "--chunks", "0")
        for words in ("--schedule = gpip", "--compare = zb", "--ranks", "--microbatches = x", "--forward = -1",
                      "--overlapped = soon", "--sends = often", "--jsn", "--csv", "--chunks = 0"):
            self.assertIn(words, said)
        self.assertEqual(len(said.strip().splitlines()), 10, said)

    def test_numbers_that_are_too_large_hear_the_largest(self):
        said = self.refused("--schedule", "1f1b", "--ranks", "2", "--microbatches", "4294967296")
        self.assertIn("--microbatches = 4294967296: must be at most 2147483647; nearest valid is 2147483647", said)

    def test_of_numbers_that_make_too_many_passes_the_largest_is_named(self):
        for words, said in ((("4", "8", "100000000"), "--chunks = 100000000: must leave .*; nearest valid is 524288"),
                            (("4", "100000000", "2"), "--microbatches = 100000000: must leave .*; nearest valid is 2097152"),
                            (("100000000", "8", "2"), "--ranks = 100000000: must leave .*; nearest valid is 1048576"),
                            (("65536", "65536", "65537"), "--chunks = 65537: must leave [^;]*\n")):
            ranks, microbatches, chunks = words
            self.assertRegex(self.refused("--schedule", "interleaved", "--ranks", ranks, "--microbatches", microbatches,
                                          "--chunks", chunks), said)

    def test_a_grid_that_nobody_could_look_at_is_refused(self):
        words = ("--schedule", "1f1b", "--ranks", "2", "--microbatches", "4", "--forward", "1e-9", "--weight-grad", "1e15")
        said = self.refused(*words, "--width", "0")
        self.assertRegex(said, r"^--width = 0: would draw 1f1b, 2 ranks, 4 microbatches in \d{10} characters; at most "
                         "268435456 are drawn; nearest valid is 160\n$")
        for width in ("160", "2147483647"):
            done = simulate(*words[:6], "--width", width)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(simulate(*words).returncode, 0)

    def test_times_are_such_as_can_be_added_up(self):
        words = ("--schedule", "1f1b", "--ranks", "2", "--microbatches", "4")
        options = ("--forward", "--input-grad", "--weight-grad", "--overlapped", "--recompute", "--update", "--transfer",
                   "--activation", "--pending")
        said = self.refused(*words, *(word for option in options for word in (option, "1e300")))
        for option in options:
            self.assertRegex(said, rf"{option} = 1e300: must be a (time|size), a number from 0 to 1e\+15; nearest valid is")
        times = self.written("times", "1 1 1\n1 1e300 1\n")
        self.assertIn("times:2 = 1e300: must be a time", self.refused(*words, "--stage-times", times))
        trace = os.path.join(self.folder, "trace.json")
        said, = self.said(*words, "--forward", "1e15", "--input-grad", "0", "--weight-grad", "1e15", "--trace",
                          trace)
        self.assertEqual(said["makespan"], 5 * 2e15)
        with open(trace) as file:
            events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
        self.assertAlmostEqual(max(event["ts"] + event["dur"] for event in events) / 1e22, 1)

    def test_conditions_of_a_schedule_name_the_options(self):
        said = self.refused("--schedule", "interleaved", "--ranks", "4", "--microbatches", "8", "--group", "3")
        self.assertIn("--group = 3", said)
        said = self.refused("--schedule", "zb-v", "--ranks", "2", "--microbatches", "4", "--chunks", "3")
        self.assertIn("--chunks = 3", said)
        if "dualpipe" in known_schedules():
            said = self.refused("--schedule", "dualpipe", "--ranks", "3", "--microbatches", "5")
            self.assertIn("--ranks = 3", said)
            self.assertIn("--microbatches = 5", said)


if __name__ == "__main__":
    unittest.main()
