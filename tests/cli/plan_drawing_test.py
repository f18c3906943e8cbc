"""braid plan --fixed --svg: the predicted step as a picture."""
import re
import unittest

from planned_run import PlannedRun


class PlanDrawing(PlannedRun):
    def test_the_predicted_step_is_drawn_with_what_it_moves_on_disk(self):
        words = ["--nodes", "1", "--fixed", "--svg", "step.svg", "model.layers=4", "model.heads=8", "model.width=1024", "train.batch=8",
                 "mesh.pipe=1", "mesh.tensor=1"]
        tiers = [f"memory.{tensors}=disk" for tensors in ("optimizer", "gradients", "parameters", "activations")]
        layout, = self.layouts(*words, *tiers)
        drawn = (self.path / "step.svg").read_text()
        seconds, read, written = re.search(r"predicted, step ([\d.]+) s.*, ([\d.]+) GiB read from disk, ([\d.]+) GiB written", drawn).groups()
        self.assertAlmostEqual(float(seconds) / layout["step_seconds"], 1, delta=0.01)
        self.assertAlmostEqual(float(read) + float(written), layout["disk_gib"], delta=0.11)  # two figures of one decimal
        self.assertEqual(re.findall(r'class="disk"[^>]*>(\w+)<', drawn), ["read", "write"])
        for content in ("optimizer states", "gradients", "parameters", "activations"):
            self.assertRegex(drawn, f"<title>(read|write) {content}: ")
        self.assertIn(f"   disk:    rank 0 reads and writes {layout['disk_gib']:.1f} GiB in a step\n", self.plan(*words, *tiers))

        layout, = self.layouts(*words, "mesh.pipe=2")
        self.assertNotIn("disk_gib", layout)
        drawn = (self.path / "step.svg").read_text()
        self.assertEqual(re.findall(r">(rank \d)<", drawn), ["rank 0", "rank 1"])
        self.assertIn("send, receive", drawn)
        self.assertNotIn("disk", re.sub("<style>.*?</style>", "", drawn, flags=re.S))

    def test_a_picture_is_of_one_layout(self):
        known = ["run.toml", "--cluster", "dgx-a100-80gb", "--nodes", "8"]
        self.assertEqual(self.refused(*known, "--svg", "step.svg"), "--svg requires --fixed\n")
        self.assertEqual(self.refused(*known, "--compare", "--svg", "step.svg"), "--svg requires --fixed\n")
        self.assertEqual(self.refused(*known, "--fixed", "--svg", "./run.toml"),
                         "--svg = ./run.toml: must not replace a file that the command reads\n")
        many = ["model.layers=8", "mesh.data=1", "train.batch=65536"]
        self.assertEqual(self.refused(*known, "--fixed", "--svg", "step.svg", *many),
                         "--svg = step.svg: draws schedules that are simulated, of at most 400000 passes; the step of this run has more\n")
        self.assertFalse((self.path / "step.svg").exists())


if __name__ == "__main__":
    unittest.main()
