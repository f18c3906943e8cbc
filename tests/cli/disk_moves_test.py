"""What a run says of the bytes that its last step reads from disks and writes to them."""
import csv
import json
import unittest

from tiny_run import TinyRun

TIERS = [f"memory.{tensors}=disk" for tensors in ("optimizer", "gradients", "parameters", "activations")]
SHORT = ["train.steps=3", "train.eval_every=0", "train.save_every=0", "mesh.pipe=2", "model.context=64"]


class DiskMoves(TinyRun):
    def moves(self):
        with open(self.path / "run/moves.csv", encoding="utf8") as rows:
            return list(csv.DictReader(rows))

    def test_every_transfer_is_listed_and_drawn(self):
        for ranks in ("threads", "processes"):
            done = self.trained(*SHORT, *TIERS, f'run.ranks="{ranks}"', "train.overwrite=true")
            self.assertRegex(done.stdout, r"(?m)^disk in the last step: all ranks read [\d.]+ .iB and wrote [\d.]+ .iB; "
                                          r"each transfer is in run/moves.csv$")
            rows = self.moves()
            self.assertEqual({(row["step"], row["rank"]) for row in rows}, {("3", "0"), ("3", "1")})
            self.assertEqual({row["content"] for row in rows}, {"optimizer", "gradients", "parameters", "activations"})
            for rank in "01":
                for direction in ("read", "write"):
                    begins = [float(row["begin"]) for row in rows if (row["rank"], row["direction"]) == (rank, direction)]
                    self.assertTrue(begins)
                    self.assertEqual(begins, sorted(begins))
            for row in rows:
                self.assertLessEqual(0, float(row["begin"]))
                self.assertLessEqual(float(row["begin"]), float(row["end"]))
            last = [line for line in self.metrics() if line["kind"] == "step"][-1]
            self.assertEqual(sum(int(row["bytes"]) for row in rows if row["rank"] == "0"), last["disk_bytes"])
            events = json.loads((self.path / "run/trace.json").read_text())["traceEvents"]
            self.assertEqual(sum(event["args"]["bytes"] for event in events if event.get("cat") == "disk"),
                             sum(int(row["bytes"]) for row in rows))
            self.assertEqual(self.braid("report", "run").returncode, 0)
            for name in ("timeline.svg", "report.html"):
                drawn = (self.path / "run" / name).read_text()
                self.assertEqual((drawn.count(">read<"), drawn.count(">write<")), (2, 2), name)
                self.assertIn("<title>write activations: ", drawn)

    def test_a_run_in_memory_has_no_moves(self):
        self.trained(*SHORT, *TIERS)
        self.assertTrue((self.path / "run/moves.csv").exists())
        done = self.trained(*SHORT, "train.resume=latest", "train.steps=4")
        self.assertFalse((self.path / "run/moves.csv").exists(), "that of an earlier start")
        self.assertNotIn("disk in the last step", done.stdout)
        self.assertNotIn(">read<", (self.path / "run/timeline.svg").read_text())


if __name__ == "__main__":
    unittest.main()
