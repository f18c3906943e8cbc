"""tools/check_components names every kind of offence, on a small tree made for the purpose."""
import pathlib
import subprocess
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_components"


class CheckComponents(unittest.TestCase):
    def check(self, lines, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "CMakeLists.txt").write_text("\n".join(lines) + "\n")
            for name, content in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(content)
            done = subprocess.run([CHECK, folder], capture_output=True, text=True)
            return done.returncode, done.stdout

    def test_a_good_tree_passes(self):
        code, said = self.check(
            ["braid_component(base)", "braid_component(spec COMPONENTS base)"],
            {"braid/spec/a.h": '#include "braid/base/errors.h"\n#include "braid/spec/b.h"\n'},
        )
        self.assertEqual((code, said), (0, "2 components, no offence\n"))

    def test_a_forbidden_include_is_named_with_its_line(self):
        code, said = self.check(
            ["braid_component(base)", "braid_component(spec COMPONENTS base)"], {"braid/base/a.h": '\n#include "braid/spec/b.h"\n'}
        )
        self.assertEqual((code, said), (1, "braid/base/a.h:2: base may not include spec\n"))

    def test_torch_stays_out_of_the_pure_wing(self):
        code, said = self.check(["braid_component(base)"], {"braid/base/a.cpp": "#include <ATen/core/Tensor.h>\n"})
        self.assertEqual((code, said), (1, "braid/base/a.cpp:1: base is built without LibTorch and may not include torch\n"))

    def test_a_tree_in_a_folder_called_cuda_is_no_other(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder, "cuda")
            folder.mkdir()
            (folder / "CMakeLists.txt").write_text("braid_component(base)\n")
            source = folder / "braid/base/a.cpp"
            source.parent.mkdir(parents=True)
            source.write_text("#include <ATen/core/Tensor.h>\n")
            done = subprocess.run([CHECK, folder], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout),
                         (1, "braid/base/a.cpp:1: base is built without LibTorch and may not include torch\n"))

    def test_one_name_is_one_type(self):
        code, said = self.check(
            ["braid_component(base)"],
            {"braid/base/a.h": "struct Fault {\n};\n", "braid/base/b.h": "class Other;\nclass Fault final {\n};\n"},
        )
        self.assertEqual((code, said), (1, "braid/base/b.h:2: Fault is also defined in braid/base/a.h:1\n"))

    def test_namespaces_may_have_types_of_one_name(self):
        header = "namespace braid::%s {\nstruct Fault {\n};\n}\n"
        files = {"braid/base/a.h": header % "base", "braid/spec/a.h": header % "spec"}
        components = ["braid_component(base)", "braid_component(spec)"]
        self.assertEqual(self.check(components, files)[0], 0)
        code, said = self.check(components, files | {"braid/spec/b.h": header % "spec"})
        self.assertEqual((code, said), (1, "braid/spec/b.h:2: Fault is also defined in braid/spec/a.h:2\n"))

    def test_what_is_unnamed_is_once_in_its_component(self):
        first = "namespace braid {\nnamespace {\n\nconstexpr int kMost = 3;\n\nint twice(int value) { return 2 * value; }\n\n}  // namespace\n}\n"
        files = {"braid/base/a.cpp": first, "braid/spec/a.cpp": first}
        components = ["braid_component(base)", "braid_component(spec COMPONENTS base)"]
        self.assertEqual(self.check(components, files)[0], 0)
        other = first.replace("kMost", "kLeast").replace("int value", "double value")
        self.assertEqual(self.check(components, files | {"braid/base/b.cpp": other})[0], 0)
        code, said = self.check(components, files | {"braid/base/b.cpp": first.replace("value", "number")})
        self.assertEqual((code, said), (1, "braid/base/b.cpp:1: kMost is also in braid/base/a.cpp\n"
                                           "braid/base/b.cpp:1: twice is also in braid/base/a.cpp\n"))

    def test_a_test_has_a_namespace_of_its_own(self):
        code, said = self.check(
            ["braid_component(base)"],
            {
                "tests/base/a_test.cpp": "namespace braid::a_test {\n}\n",
                "tests/base/b_test.cpp": "namespace braid {\n}\n",
            },
        )
        self.assertEqual((code, said), (1, "tests/base/b_test.cpp:1: has no namespace braid::b_test\n"))

    def test_components_are_listed_above_those_that_use_them(self):
        code, said = self.check(["braid_component(spec COMPONENTS base)", "braid_component(base)"], {})
        self.assertEqual((code, said), (1, "CMakeLists.txt: spec names base, which is below it\n"))


if __name__ == "__main__":
    unittest.main()
