"""The README and docs/concepts.md tell the truth: their commands are run and print what they say. Numbers of training runs are not
compared."""
import re
import tempfile
import unittest

from braid_binary import SOURCE, braid

PREFIX = "$ build/release/bin/braid "
PAGES = ["README.md", "docs/concepts.md"]


def blocks(page):
    """(command line without "$ ", printed lines) of every fenced block that shows a command."""
    for language, fence in re.findall(r"^```(\w*)\n(.*?)^```$", (SOURCE / page).read_text(), re.M | re.S):
        first, _, rest = fence.partition("\n")
        if not language and first.startswith("$ "):
            yield first, rest


def shape(line):
    """The line without its numbers, so that runs of different length compare."""
    line = re.sub(r"-?\d[\d,.]*(e[-+]?\d+)?", "#", line)
    line = re.sub(r"#k tokens", "# tokens", re.sub(r"(#[dhms])+$", "#", line))
    line = re.sub(r"# (m?s|[KM]iB|B)\b", "# unit", re.sub(r"  +", " ", line.strip()).replace("+#", "#"))
    return line.replace("not below", "below").replace("# rank of # threads", "# ranks of # thread")


def shapes(text):
    """Shapes of what braid train prints, the sample left out."""
    lines = text.partition("sample, also in ")[0].splitlines()
    return {shape(line) for line in lines if not line.startswith(("setup: ", "build: ", "..."))}


class Readme(unittest.TestCase):
    def test_commands_print_what_it_shows(self):
        for page in PAGES:
            shown = [(first, rest) for first, rest in blocks(page) if first.startswith(PREFIX)]
            self.assertGreaterEqual(len(shown), 1, page)
            for first, rest in shown:
                with self.subTest(page, command=first):
                    self.assertEqual(braid(*first[len(PREFIX):].split()).stdout.rstrip(), rest.rstrip())

    def test_the_demo_prints_lines_of_these_kinds(self):
        shown = dict(blocks("README.md"))["$ scripts/demo"]
        with tempfile.TemporaryDirectory() as folder:
            for number in range(20):
                with open(f"{folder}/{number}.py", "w") as file:
                    file.write("def quick(brown, fox):\n    return brown * fox\n" * 30)
            done = braid("train", str(SOURCE / "examples" / "quickstart.toml"), f'data.paths=["{folder}"]',
                         f'train.out="{folder}/quickstart"', "train.steps=3", "train.eval_every=2", "train.batch=4",
                         "train.eval_sequences=4", "train.sample_tokens=2", "optimizer.warmup_steps=1")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(shapes(done.stdout.replace(folder, "runs")), shapes(shown))

    def test_its_code_is_in_an_example_that_is_built_and_run(self):
        def lines(text):
            return "\n".join(line.strip() for line in text.splitlines() if line.strip())

        examples = [lines(source.read_text()) for source in sorted((SOURCE / "examples").glob("*/main.cpp"))]
        code = re.findall(r"^```cpp\n(.*?)^```$", (SOURCE / "README.md").read_text(), re.M | re.S)
        self.assertGreaterEqual(len(code), 1)
        for snippet in code:
            self.assertTrue(any(lines(snippet) in example for example in examples), snippet)

    def test_the_files_it_names_are_there(self):
        for page in PAGES:
            text, folder = (SOURCE / page).read_text(), (SOURCE / page).parent
            for name in re.findall(r"\]\(([^)#:]+)\)", text):
                self.assertTrue((folder / name).exists(), name)
            for name in re.findall(r"\bscripts/\w+", text):
                self.assertTrue((SOURCE / name).exists(), name)


if __name__ == "__main__":
    unittest.main()
