"""braid simulate and braid config as a user calls them."""
import json
import unittest

from braid_binary import SOURCE, braid


class Simulate(unittest.TestCase):
    def test_json_has_the_published_numbers(self):
        done = braid("simulate", "--schedule", "1f1b", "--ranks", "4", "--microbatches", "8", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual(said["makespan"], 33)
        self.assertEqual(said["bubble_time"], 9)
        self.assertEqual(said["peak_activations"], [4, 3, 2, 1])
        self.assertEqual(len(said["programs"]), 4)

    def test_everything_wrong_is_said_at_once(self):
        done = braid("simulate", "--schedule", "1f1bb", "--ranks", "0", "--microbatches", "8")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertIn("1f1b", done.stderr)
        self.assertIn("--ranks", done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 2, done.stderr)

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
