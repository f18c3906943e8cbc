"""braid inside another project, configured only, and an executable's word on a processor that is too old for it."""
import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["BRAID_SOURCE_DIR"])
PARENT = """
cmake_minimum_required(VERSION 3.25)
project(parent LANGUAGES CXX)
set(TORCH_INSTALL_PREFIX {torch})  # as find_package(Torch) leaves it
add_subdirectory({braid} braid)
add_executable(app app.cpp)
target_link_libraries(app PRIVATE braid_module)
"""


class Subproject(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def configured(self, torch):
        """The finished process, and what ninja would do."""
        (self.path / "CMakeLists.txt").write_text(PARENT.format(torch=torch, braid=SOURCE))
        (self.path / "app.cpp").touch()
        # A parent need not have what tests are built with.
        done = subprocess.run(["cmake", "-G", "Ninja", "-S", self.path, "-B", self.path / "build", "-DBRAID_CUDA=OFF",
                               "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON"], capture_output=True, text=True,
                              env={name: value for name, value in os.environ.items() if name != "BRAID_TORCH_ROOT"})
        rules = self.path / "build/build.ninja"
        return done, rules.read_text() if rules.exists() else ""

    def test_only_libraries_and_the_program_are_built_with_the_parents_torch(self):
        torch = self.path / "elsewhere"
        torch.symlink_to(os.environ["BRAID_TORCH"])
        done, rules = self.configured(torch)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("braid: no build type is given; takes Release", done.stdout)
        outputs = {line.split(":")[0].split()[-1] for line in rules.splitlines() if line.startswith("build ")}
        made = {pathlib.Path(name).name for name in outputs}
        self.assertTrue({"braid", "libbraid_module.a"} <= made)
        self.assertEqual([name for name in made if name.endswith("_test") or
                          name.startswith(("example_", "bench_")) and "." not in name], [])
        self.assertIn(f"{torch}/lib/libtorch_cpu.so", rules)
        self.assertNotIn(f"{SOURCE}/.venv", rules)
        app = rules[rules.index("build CMakeFiles/app.dir/app.cpp.o:"):].split("\n\n")[0]
        self.assertIn("-std=gnu++20", app)  # braid's headers are C++20, whatever the parent's own default is
        self.assertIn(f"-isystem {torch}/include", app)
        self.assertRegex(rules, "FLAGS = -O[23] .*-march=x86-64-v3")

    def test_a_torch_of_the_parents_that_is_none_is_named(self):
        done, _ = self.configured(self.path / "nowhere")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Could NOT find LibTorch", done.stderr)


class OldProcessor(unittest.TestCase):
    def test_it_gets_a_message_before_anything_else_runs(self):
        program = os.environ["BRAID_OLD_PROCESSOR"]
        done = subprocess.run([program], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertEqual(done.stderr, f"{program}: this processor lacks AVX2, FMA or BMI2: the program was built for x86-64-v3 "
                         "(Haswell, Zen, and newer)\n")


if __name__ == "__main__":
    unittest.main()
