"""braid installed: programs outside the tree find it with CMake and with pkg-config, and the installed command runs."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from engines_test import AS_ROOT, MPIRUN
from tiny_run import write_inputs

SOURCE = pathlib.Path(os.environ["BRAID_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["BRAID_BUILD_DIR"])
TORCH = pathlib.Path(os.environ["BRAID_TORCH"])
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
set(CMAKE_CXX_FLAGS "-O0")
set(TORCH_INSTALL_PREFIX {torch})  # as find_package(Torch) leaves it
find_package(braid 0.1 REQUIRED COMPONENTS {components})
{targets}
"""
# A program of the library without LibTorch.
DRAWS = """
#include <cstdio>

#include "braid/schedule/generators.h"
#include "braid/schedule/simulate.h"

int main() {
  const braid::Schedule schedule = braid::make_schedule("1f1b", {.ranks = 2, .microbatches = 4});
  std::printf("%d ranks\\n", schedule.num_ranks());
}
"""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.prefix = cls.folder / "prefix"
        done = run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)

    def test_what_the_command_opens_is_installed_beside_it(self):
        opened = {path.name for path in (BUILD / "bin").glob("libbraid_*.so")}
        self.assertEqual({path.name for path in (self.prefix / "lib/braid").glob("libbraid_*.so")}, opened)

    @unittest.skipUnless(shutil.which("dpkg-shlibdeps"), "no dpkg-shlibdeps here")
    def test_a_debian_package_of_a_plug_in_has_it_where_the_command_looks(self):
        names = [path.stem.removeprefix("libbraid_mpi_") for path in (BUILD / "bin").glob("libbraid_mpi_*.so")]
        if not names:
            self.skipTest("no MPI was installed when braid was built")
        done = run("cpack", "--config", BUILD / "CPackConfig.cmake", "-D", f"CPACK_COMPONENTS_ALL={';'.join(names)}", "-B",
                   self.folder / "packages")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        root = self.folder / "root"
        (root / "usr/bin").mkdir(parents=True)
        shutil.copy(self.prefix / "bin/braid", root / "usr/bin")
        write_inputs(self.folder)
        for name in names:
            package, = (self.folder / "packages").glob(f"braid-torch-{name}_*.deb")
            self.assertRegex(run("dpkg-deb", "-f", package, "Depends").stdout, rf"braid-torch \(= .*lib{name}")
            self.assertEqual(run("dpkg-deb", "-x", package, root).returncode, 0)
            done = run(*MPIRUN[name], "-np", "2", root / "usr/bin/braid", "train", "run.toml", "mesh.data=2", "run.engine=mpi",
                       "train.steps=1", f"train.out={name}", cwd=self.folder, env=os.environ | AS_ROOT)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def configured(self, name, components, targets="", torch=TORCH):
        """A project that uses braid, configured: the finished process and the build folder."""
        project = self.folder / name
        project.mkdir()
        (project / "CMakeLists.txt").write_text(PROJECT.format(torch=torch, components=components, targets=targets))
        (project / "draws.cpp").write_text(DRAWS)
        return run("cmake", "-G", "Ninja", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}"), project / "build"

    def test_examples_of_the_readme_are_built_outside_the_tree(self):
        names = ["mlp", "data_parallel"]
        for name in names:
            shutil.copy(SOURCE / "examples" / name / "main.cpp", self.folder / f"{name}.cpp")
        targets = "".join(f"add_executable({name} {self.folder}/{name}.cpp)\n"
                          f"target_link_libraries({name} PRIVATE braid::torch braid::passive_waiting)\n" for name in names)
        done, build = self.configured("examples", "torch", targets)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(str(SOURCE / "braid"), (build / "build.ninja").read_text())
        done = run("cmake", "--build", build)
        self.assertEqual(done.returncode, 0, done.stdout)
        for name in names:
            done = run(build / name)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_library_without_libtorch_needs_none(self):
        done, build = self.configured("core", "core", "add_executable(draws draws.cpp)\ntarget_link_libraries(draws PRIVATE braid::core)",
                                      torch=self.folder / "nowhere")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run("cmake", "--build", build)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(run(build / "draws").stdout, "2 ranks\n")

    def test_pkg_config_links_the_same_program(self):
        (self.folder / "draws.cpp").write_text(DRAWS)
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", "braid", env=environment)
        self.assertEqual(flags.returncode, 0, flags.stderr)
        program = self.folder / "draws"
        done = run("g++", "-std=c++20", "-O0", self.folder / "draws.cpp", *flags.stdout.split(), "-o", program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(run(program).stdout, "2 ranks\n")
        torch = run("pkg-config", "--libs", "braid-torch", env=environment).stdout
        self.assertIn("-lbraid_module", torch)
        self.assertIn("-ltorch_cpu", torch)

    def test_a_torch_of_another_version_is_refused_by_name(self):
        other = self.folder / "torch"
        for name in ["include/ATen/core/Tensor.h", "lib/libtorch_cpu.so", "lib/libc10.so"]:
            (other / name).parent.mkdir(parents=True, exist_ok=True)
            (other / name).touch()
        version = other / "include/torch/headeronly/version.h"
        version.parent.mkdir(parents=True)
        version.write_text("#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 3\n#define TORCH_VERSION_PATCH 1\n")
        done, _ = self.configured("other", "torch", torch=other)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('Found unsuitable version "2.3.1"', " ".join(done.stderr.split()))

    def test_a_component_that_there_is_not_is_named(self):
        done, _ = self.configured("component", "gpu")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('not "gpu"', " ".join(done.stderr.split()))

    def test_the_command_runs_and_has_its_pages(self):
        done = run(self.prefix / "bin/braid", "--version")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, run(BUILD / "bin/braid", "--version").stdout)
        for page in ["man/man1/braid.1", "bash-completion/completions/braid", "zsh/site-functions/_braid",
                     "fish/vendor_completions.d/braid.fish"]:
            self.assertIn("braid", (self.prefix / "share" / page).read_text())


if __name__ == "__main__":
    unittest.main()
