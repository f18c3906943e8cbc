"""tools/check_pages names every kind of offence, on a small repository made for the purpose."""
import pathlib
import subprocess
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_pages"


def git(root, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    return subprocess.run(["git", "-C", root, *identity, *words], check=True, capture_output=True, text=True).stdout.strip()


class CheckPages(unittest.TestCase):
    def check(self, pages, use_git=True):
        """The exit code and the lines printed. HEAD in a page stands for the commit that the repository has."""
        with tempfile.TemporaryDirectory() as folder:
            head = ""
            if use_git:
                git(folder, "init", "-q")
                git(folder, "commit", "-q", "--allow-empty", "-m", "first")
                head = git(folder, "rev-parse", "--short=9", "HEAD")
            for name, text in pages.items():
                pathlib.Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
                pathlib.Path(folder, name).write_text(text.replace("HEAD", head))
            done = subprocess.run([CHECK, folder], capture_output=True, text=True)
            return done.returncode, done.stdout.splitlines()

    def test_pages_reached_by_links_and_cited_commits_that_exist_pass(self):
        self.assertEqual(
            self.check({"README.md": "[a](docs/a.md#part) [there](https://example.com/x.md)",
                        "docs/a.md": "[b](../bench/b/) at commit HEAD, xxh3 4210688", "bench/b/README.md": ""}),
            (0, ["3 pages, no offence"]))

    def test_a_page_that_no_link_reaches_is_named(self):
        code, lines = self.check({"README.md": "`docs/a.md`", "docs/a.md": "[b](b.md)", "docs/b.md": "[a](a.md)"})
        self.assertEqual((code, lines), (1, ["docs/a.md:1: README.md reaches it by no links",
                                             "docs/b.md:1: README.md reaches it by no links"]))

    def test_a_link_to_nothing_is_named_with_its_line(self):
        code, lines = self.check({"README.md": "\n[a](docs/a.md)\n```\nmap[i](x)\n```\n"})
        self.assertEqual((code, lines), (1, ["README.md:2: docs/a.md does not exist"]))

    def test_a_source_that_does_not_exist_is_named(self):
        page = "`base/text.h` `base/words.h` `torch/torch.h` `words.h`\n| `base` | `text.h` `words.h` `sub/text.h` |\n"
        code, lines = self.check({"README.md": page, "braid/base/text.h": "", "braid/base/sub/text.h": ""})
        self.assertEqual((code, lines), (1, ["README.md:1: base/words.h does not exist", "README.md:2: words.h does not exist"]))

    def test_a_commit_that_is_not_in_the_history_is_named(self):
        code, lines = self.check({"README.md": "at commit HEAD\nat 07e2c37, alone"})
        self.assertEqual((code, lines), (1, ["README.md:2: no commit 07e2c37 in the history"]))

    def test_a_ratio_is_a_quotient_of_its_row_or_explained(self):
        table = "| braid, s | DDP, s | ratio |\n|---|---|---|\n| 1.193 | 1.258 | 1.05 x |\n| 1.193 | 1.258 | 1.07 x |\n"
        code, lines = self.check({"README.md": table})
        self.assertEqual((code, lines), (1, ["README.md:4: 1.07 x is no quotient of its row, and the page does not say how "
                                             "ratios are formed"]))
        self.assertEqual(self.check({"README.md": "The ratio is the median of the pairs' ratios.\n" + table})[0], 0)

    def test_without_git_commits_are_not_looked_for(self):
        code, lines = self.check({"README.md": "at 07e2c37"}, use_git=False)
        self.assertEqual((code, lines), (0, ["1 pages, no offence",
                                             "commits are not looked for: no git, or no whole history"]))


if __name__ == "__main__":
    unittest.main()
