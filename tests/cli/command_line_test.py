"""What all commands share: help, version, suggestions, the manual page, completion, and messages that are safe to print."""
import functools
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from braid_binary import BINARY, SOURCE, braid


@functools.cache
def printed(*words):
    """What braid prints when all is well. It is started once for the same words."""
    done = braid(*words)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def commands():
    return re.findall(r"^  (\w+) ", printed("--help"), re.M)


def leaves():
    """Every command that runs, as its words."""
    for name in commands():
        inner = re.findall(r"^  ([\w-]+) ", printed(name, "--help"), re.M) if name in ("data", "bench", "ckpt") else []
        yield from ([name, word] for word in inner) if inner else [[name]]


class Help(unittest.TestCase):
    def test_help_of_a_command_is_what_its_option_prints(self):
        for words in [[], ["data"], *leaves()]:
            self.assertTrue(printed(*words, "--help").startswith(" ".join(["usage: braid", *words])), words)
        for words in [[], ["data"], ["data", "prepare"]]:
            self.assertEqual(printed("help", *words), printed(*words, "--help"))
        self.assertIn("nearest valid is prepare", braid("help", "data", "prepar").stderr)

    def test_help_is_printed_whatever_else_is_said(self):
        done = braid("data", "prepare", "--shard-tokens", "x", "--frob", "--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_group_without_a_command_is_a_mistake(self):
        for words in ([], ["data"]):
            done = braid(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertTrue(done.stderr.startswith("usage: "))

    def test_version_says_what_was_built(self):
        lines = printed("--version").splitlines()
        version = re.search(r"project\(braid VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
        self.assertRegex(lines[0], rf"^braid {re.escape(version)}(, commit [0-9a-f]{{12}}( with changes)?)?$")
        self.assertRegex(lines[1], r"^LibTorch \d+\.\d+\.\d+$|^without LibTorch: ")
        is_built = (pathlib.Path(BINARY).parent / "libbraid_cuda.so").exists()
        self.assertEqual(lines[2], "CUDA sources built, as libbraid_cuda.so" if is_built else
                         "without CUDA: no libbraid_cuda.so beside the program")
        self.assertEqual(len(lines), 3)

    def test_a_commit_is_named_of_a_checkout_alone(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name)

        def written(source):
            subprocess.run(["cmake", f"-DSOURCE_DIR={source}", f"-DOUT={path / 'out.cpp'}", "-P",
                            str(SOURCE / "cmake/WriteCommit.cmake")], check=True)
            return re.search(r'return "(.*)"', (path / "out.cpp").read_text())[1]

        def git(*words):
            subprocess.run(["git", "-C", path, "-c", "user.name=a", "-c", "user.email=a", *words], check=True,
                           capture_output=True)

        self.assertEqual(written(path), "")
        (path / "braid").mkdir()
        (path / "braid" / "file").write_text("1")
        git("init")
        git("add", "braid")
        git("commit", "-m", "first")
        self.assertRegex(written(path), "^[0-9a-f]{12}$")
        self.assertEqual(written(path / "braid"), "")  # somebody else's repository
        (path / "braid" / "file").write_text("2")
        self.assertRegex(written(path), "^[0-9a-f]{12} with changes$")
        before = (path / "out.cpp").stat().st_mtime_ns
        written(path)
        self.assertEqual((path / "out.cpp").stat().st_mtime_ns, before)  # nothing compiles again


class Faults(unittest.TestCase):
    def refused(self, *words):
        done = braid(*words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr

    def test_a_misspelt_command_or_option_has_a_nearest_one(self):
        self.assertRegex(self.refused("reprot"), "^reprot: is no command of braid, which has .*; nearest valid is report\n$")
        self.assertIn("nearest valid is --version", self.refused("--verison"))
        self.assertIn("nearest valid is inspect", self.refused("data", "inspct"))
        self.assertIn("nearest valid is data train-bpe\n", self.refused("train-bpe", "text"))
        self.assertIn("nearest valid is data prepare\n", self.refused("prepair"))
        self.assertIn("nearest valid is report\n", self.refused("REPORT"))
        self.assertIn("nearest valid is data prepare\n", self.refused("tokenize"))
        if "train" in commands():
            for word, meant in (("eval", "evaluate"), ("generate", "sample"), ("resume", "train"), ("pretrain", "train")):
                self.assertIn(f"nearest valid is {meant}\n", self.refused(word, "run"))
        self.assertEqual(self.refused("report", "run", "--ot", "page"),
                         "--ot: is not an option of braid report; nearest valid is --out\n")
        self.assertEqual(self.refused("config", "--markdwn=1"),
                         "--markdwn: is not an option of braid config; nearest valid is --markdown\n")
        self.assertIn("nearest valid is zsh", self.refused("completion", "zhs"))

    def test_a_key_with_dashes_or_as_peers_call_it_is_answered_with_the_override(self):
        takes_keys = ", which takes keys of the configuration without dashes; nearest valid is "
        for words, said, meant in ((["--mesh.data=2"], "--mesh.data", "mesh.data=2"),
                                   (["--train.steps", "5"], "--train.steps", "train.steps=5"),
                                   (["--bf16"], "--bf16", "train.dtype=bfloat16"),
                                   (["--tensor-model-parallel-size", "2"], "--tensor-model-parallel-size", "mesh.tensor=2"),
                                   (["--num-train-epochs=3"], "--num-train-epochs", "train.steps")):
            self.assertEqual(self.refused("plan", "run.toml", *words),
                             f"{said}: is not an option of braid plan{takes_keys}{meant}\n")
        self.assertIn("nearest valid is --nodes\n", self.refused("plan", "run.toml", "--nnodes=2"))
        if "train" in commands():
            for option in ("--temp", "--do-sample"):
                self.assertIn("nearest valid is --temperature\n", self.refused("sample", "run", option, "0.5"))
            for peer, option in (("--max-new-tokens", "--tokens"), ("--num-return-sequences", "--num-samples"),
                                 ("--max_length", "--tokens"), ("--batch-size", "--batch")):
                self.assertIn(f"nearest valid is {option}\n", self.refused("sample", "run", peer, "5"))
            for peer, option in (("--master-addr", "--root"), ("--rdzv-endpoint", "--root"), ("--node-rank", "--node")):
                self.assertIn(f"nearest valid is {option}\n", self.refused("train", "run.toml", f"{peer}=5"))

    def test_an_override_in_place_of_the_file(self):
        for words in (["plan", "train.steps=5"], ["plan", "learning_rate=1", "mesh.data=2"]):
            self.assertEqual(self.refused(*words), f"FILE = {words[1]}: is an override, and the run's file, such as run.toml, "
                             "must stand before it; braid config --starter prints one\n")

    def test_everything_that_is_wrong_is_said_at_once(self):
        said = self.refused("data", "prepare", "--shard-tokens", "many", "--threads", "9999999999", "--weight", "nan",
                            "--thread", "--validation-fraction", "inf", "text", "--text-field", "a b", "--text-field", "c")
        self.assertEqual(sorted(said.splitlines()), [
            "--out: is needed; the folder to fill",
            "--shard-tokens = many: must be a whole number",
            "--text-field: must be given once, and is given 2 times: a b and c",
            "--thread: is not an option of braid data prepare; nearest valid is --threads",
            "--threads = 9999999999: is too large",
            "--validation-fraction = inf: must be a finite number",
            "--weight = nan: must be a finite number"])

    def test_a_value_that_is_missing(self):
        self.assertEqual(self.refused("data", "prepare", "text", "--out"),
                         "--out: needs a value behind it: the folder to fill\n")
        for words in (["report"], ["report", ""]):
            self.assertEqual(self.refused(*words), "RUN: is needed; the run's folder (train.out)\n")
        self.assertEqual(self.refused("report", "a", "b"), "b: is one word too many for braid report\n")

    def test_names_of_options_are_such_as_every_version_of_the_library_takes(self):
        names = []
        for source in sorted((SOURCE / "braid/cli").glob("*.cpp")):
            names += re.findall(r'add_(?:option|flag)\(\s*"([^"]*)"', source.read_text())
        self.assertGreater(len(names), 30)
        for name in names:
            self.assertRegex(name, r"^(--)?[A-Za-z][\w-]*$")


class Messages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def said_of(self, table):
        (self.path / "table.csv").write_bytes(table)
        done = subprocess.run([BINARY, "simulate", "--schedule", "file:table.csv"], cwd=self.path, capture_output=True,
                              timeout=60)
        self.assertEqual(done.returncode, 2)
        return done.stderr

    def test_what_a_file_holds_neither_steers_the_terminal_nor_ends_the_line(self):
        said = self.said_of(b"0F0,\x1b]0;title\x07zap\x00behind\xff\r\n")
        self.assertIn(rb"column 2 = \x1b]0;title\x07zap\x00behind\xff: must be", said)
        self.assertEqual(re.sub(rb"[ -~\n]", b"", said), b"")

    def test_names_of_files_and_words_neither(self):
        for words in (["report", "no\x1b[31mfolder"], ["tr\x1b[31main"], ["config", "--\x1b[31m"],
                      ["data", "inspect", "no\nsuch\tfolder"], ["simulate", "--schedule", "file:\x1b[31m"]):
            said = braid(*words).stderr
            self.assertEqual(re.sub(r"[ -~\n]", "", said), "", words)
            self.assertEqual(said.count("\n"), 1 + said.count("--ranks") + said.count("--microbatches"), said)

    def test_a_cell_of_megabytes_is_one_short_line(self):
        said = self.said_of(b"0F0," + b"F" * 5_000_000)
        self.assertLess(len(said), 600)
        self.assertIn(b"FFF...: has 5000000 characters", said)


class Output(unittest.TestCase):
    def test_what_cannot_be_written_is_no_success(self):
        with open("/dev/full", "w") as full:
            for words in (["--version"], ["completion", "bash"], ["config"]):
                done = subprocess.run([BINARY, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stderr), (3, "braid: standard output: cannot be written\n"), words)


class Completion(unittest.TestCase):
    def offered(self, *words):
        """What bash offers for the last of the words."""
        quoted = " ".join(f"'{word}'" for word in ["braid", *words])
        script = printed("completion", "bash") + f'\nCOMP_WORDS=({quoted}) COMP_CWORD={len(words)}\n' \
                 'compopt() { echo "option $*"; }\n_braid\nprintf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stderr, "")
        return done.stdout.split("\n")[:-1]

    def test_commands_and_options_where_they_may_stand(self):
        self.assertEqual(self.offered(""), commands())
        self.assertEqual(self.offered("da"), ["data"])
        self.assertEqual(self.offered("data", ""), ["prepare", "inspect", "train-bpe", "train-wordpiece"])
        self.assertEqual(self.offered("data", "prepare", "--te"), ["--text-field"])
        self.assertEqual(self.offered("--v"), ["--version"])
        for words in leaves():
            text = printed(*words, "--help")
            options = re.findall(r"^  (?:-h, )?(--[\w-]+)", text, re.M)
            self.assertEqual(self.offered(*words, "--"), options, words)

    def test_files_elsewhere(self):
        for words in (["report", ""], ["data", "prepare", "--out", ""], ["data", "prepare", "text", ""]):
            self.assertEqual(self.offered(*words), [""], words)  # bash takes names of files then

    def test_configuration_keys_behind_the_file_of_a_run(self):
        if "train" not in commands():
            self.skipTest("built without LibTorch")
        keys = re.findall(r"^## \[(\w+)\]|^\| `(\w+)` \|", (SOURCE / "docs/configuration.md").read_text(), re.M)
        self.assertEqual(self.offered("train", ""), [""])
        self.assertEqual(self.offered("train", "run.toml", "train.see"), ["option -o nospace", "train.seed="])
        self.assertEqual(self.offered("bench", "scaling", "run.toml", "mesh.pi"), ["option -o nospace", "mesh.pipe="])
        self.assertEqual(self.offered("train", "run.toml", "train.out", "="), [""])
        self.assertEqual(self.offered("train", "run.toml", "optimizer.kind", "=", "a"), ["adamw", "adagrad"])
        self.assertEqual(self.offered("train", "run.toml", "checkpoint.async", "="), ["true", "false"])
        self.assertIn("gpt2-124m", self.offered("train", "run.toml", "model.preset", "="))
        section, sections = "", {}
        for name, leaf in keys:
            section = name or section
            sections.setdefault(section, []).extend([f"{section}.{leaf}="] if leaf else [])
        self.assertEqual(self.offered("train", "run.toml", "mesh."), sections["mesh"])

    def test_the_other_shells_read_their_scripts(self):
        for shell in ("zsh", "fish"):
            script = printed("completion", shell)
            for words in leaves():
                self.assertIn(f"'braid {' '.join(words)}'", script)
            if shutil.which(shell):
                done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stderr), (0, ""))


class Manual(unittest.TestCase):
    def test_it_has_every_command_and_option(self):
        page = printed("man")
        self.assertTrue(page.startswith('.TH BRAID 1 '))
        shown = page.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")
        for words in leaves():
            self.assertIn(f"\n.SH braid {' '.join(words)}\n", shown)
            for option in re.findall(r"^  (?:-h, )?(--[\w-]+.*?)(?:  |$)", printed(*words, "--help"), re.M):
                self.assertRegex(shown, rf"\.TP\n\.B (-h, )?{re.escape(option)}\n")
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
