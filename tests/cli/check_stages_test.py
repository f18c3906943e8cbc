"""tools/check_stages names what no stage runs, on builds made for the purpose."""
import pathlib
import subprocess
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_stages"


class CheckStages(unittest.TestCase):
    def check(self, builds):
        """`builds`: {build: (registered tests, tests that ran)}."""
        with tempfile.TemporaryDirectory() as folder:
            for name, (tests, ran) in builds.items():
                build = pathlib.Path(folder, name)
                build.mkdir()
                build.joinpath("CTestTestfile.cmake").write_text("".join(f"add_test({test} true)\n" for test in tests))
                build.joinpath("tests_run").write_text("".join(f"{test}\n" for test in ran))
            done = subprocess.run([CHECK, folder], capture_output=True, text=True)
            return done.returncode, done.stdout.splitlines()

    def test_a_test_may_run_in_any_of_its_builds(self):
        self.assertEqual(self.check({"core": (["base", "plan"], ["plan"]), "release": (["base", "nn"], ["base", "nn"])}),
                         (0, ["3 tests, each run in some build"]))

    def test_a_test_that_runs_in_no_build_is_named(self):
        self.assertEqual(self.check({"core": (["base", "plan"], ["base"]), "release": (["base"], ["base"])}),
                         (1, ["plan: registered in build core, run in none"]))

    def test_no_test_at_all_is_an_error(self):
        self.assertEqual(self.check({})[0], 1)


if __name__ == "__main__":
    unittest.main()
