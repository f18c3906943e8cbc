"""braid train and braid sample as a user calls them: what is written, what is said, and how it ends."""
import json
import os
import pty
import re
import unittest

from tiny_run import TinyRun

SHOWS_ALL = os.environ | {"TERM": "xterm", "LC_ALL": "C.UTF-8"}  # a terminal that takes escapes and UTF-8


class Train(TinyRun):
    def test_a_run_leaves_weights_metrics_timeline_and_configuration(self):
        done = self.braid("train", "run.toml", "mesh.pipe=2", 'train.sample_prompt="the "', "train.sample_tokens=5")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ["config.toml", "metrics.jsonl", "timeline.svg", "sample.txt", "step-3/manifest.json",
                     "step-6/model-00001-of-00002.safetensors", "step-6/optimizer-00002-of-00002.safetensors"]:
            self.assertTrue((self.path / "run" / name).exists(), name)
        kinds = [line["kind"] for line in self.metrics()]
        self.assertEqual(kinds.count("step"), 6)
        self.assertEqual(kinds.count("evaluation"), 2)
        self.assertEqual(len(self.metrics()[1]["peak_memory_bytes"]), 2)
        self.assertIn("bigram entropy", done.stdout)
        self.assertTrue((self.path / "run" / "sample.txt").read_bytes().startswith(b"the "))

    def test_the_first_configuration_trains(self):
        (self.path / "run.toml").write_text(self.braid("config", "--starter").stdout)
        self.assertIn("runs/run", self.trained("train.steps=2").stdout)

    def test_every_mesh_sees_the_same_samples_and_losses(self):
        self.assertEqual(self.braid("train", "run.toml").returncode, 0)
        for number, mesh in enumerate([["mesh.pipe=2"], ["mesh.data=2"], ["mesh.tensor=2"], ["mesh.context=2"]]):
            out = f"mesh{number}"
            self.assertEqual(self.braid("train", "run.toml", f"train.out={out}", *mesh).returncode, 0)
            hashes = [[line["sample_hash"] for line in self.metrics(o) if line["kind"] == "step"] for o in ("run", out)]
            self.assertEqual(hashes[0], hashes[1])
            self.assertEqual(len(self.losses()), len(self.losses(out)))
            for a, b in zip(self.losses(), self.losses(out)):
                self.assertAlmostEqual(a, b, delta=2e-5)

    def test_processes_share_long_sequences_of_documents(self):
        long = ["model.context=8192", "model.layers=2", "model.width=16", "train.batch=1", "train.microbatch=1", "train.steps=2",
                "train.eval_every=0", "train.save_every=0", 'data.attention="document"', "data.validation_fraction=0"]
        for number in range(30):
            (self.path / "text" / f"more{number}.txt").write_text(f"{number} jumps over the lazy dog\n" * 3 * number)
        done = self.trained(*long, "mesh.context=4", 'run.ranks="processes"')
        self.assertIn("pipe 1 x data 1 x tensor 1 x context 4 (ring) = 4 ranks", done.stdout)
        self.assert_memory_as_predicted()
        self.trained(*long, "train.out=one")
        for figure, delta in (("loss", 2e-6), ("grad_norm", 2e-5)):
            ours, theirs = ([line[figure] for line in self.metrics(out) if line["kind"] == "step"] for out in ("run", "one"))
            self.assertAlmostEqual(ours[0], theirs[0], delta=delta)

    def test_lines_follow_those_of_metrics_and_a_bar_every_step(self):
        done = self.trained("train.log_every=4")
        self.assertEqual([line["step"] for line in self.metrics() if line["kind"] == "step"], [4, 6])
        shown = re.findall(r"^step (\d)/6  loss", done.stdout, re.M)
        self.assertEqual(shown, ["1", "4", "6"])
        ours, theirs = pty.openpty()
        process = self.started("train.log_every=4", "train.out=terminal", stdout=theirs, env=SHOWS_ALL)
        os.close(theirs)
        said = b""
        while not said.count(b"6/6 "):
            said += os.read(ours, 4096)
        self.assertIn(b"\r\x1b[K1/6 ", said)
        os.close(ours)

    def test_a_dumb_terminal_gets_lines_of_ascii(self):
        for number, variables in enumerate(({"TERM": "dumb"}, {"LC_ALL": "C"})):
            ours, theirs = pty.openpty()
            process = self.started(f"train.out=plain{number}", stdout=theirs, env=SHOWS_ALL | variables)
            os.close(theirs)
            said = b""
            while not said.count(b"bigram entropy"):
                said += os.read(ours, 4096)
            os.close(ours)
            self.assertIn(b"step 6/6  loss ", said)
            self.assertEqual(re.sub(rb"[ -~\r\n]", b"", said), b"")

    # A tokenizer of its own makes fewer tokens of the same bytes.
    def test_nats_per_byte_stand_beside_nats_per_token(self):
        self.assertEqual(self.braid("data", "train-bpe", "--vocab", "300", "--out", "tok", "text").returncode, 0)
        self.assertEqual(self.braid("data", "prepare", "--out", "tokens", "--tokenizer", "tok", "text").returncode, 0)
        for data in (["data.tokenizer=tok"], ["data.paths=[tokens]"]):
            done = self.trained(*data, "train.overwrite=true")
            last = [line for line in self.metrics() if line["kind"] == "evaluation"][-1]
            per_token, per_byte = last["validation_loss"], last["validation_loss_per_byte"]
            self.assertGreater(per_token, 1.5 * per_byte)
            self.assertIn(f"step 6  validation loss {per_token:.4f}, {per_byte:.4f} per byte\n", done.stdout)
            self.assertIn(f"validation loss {per_token:.4f} nats per token, {per_byte:.4f} per byte, ", done.stdout)
        self.assertNotIn("per byte", self.trained("train.out=bytes").stdout)
        last = [line for line in self.metrics("bytes") if line["kind"] == "evaluation"][-1]
        self.assertAlmostEqual(last["validation_loss_per_byte"] / last["validation_loss"], 1, delta=0.01)

    def test_the_configuration_is_replaced_whole_and_before_metrics_are_opened(self):
        (self.path / "run").mkdir()
        (self.path / "run" / "config.toml").write_text("of an earlier run\n")
        os.link(self.path / "run" / "config.toml", self.path / "kept.toml")
        self.trained()
        self.assertEqual((self.path / "kept.toml").read_text(), "of an earlier run\n", "not written over in its place")
        self.assertFalse((self.path / "run" / "config.toml.tmp").exists())
        (self.path / "next" / "config.toml" / "in the way").mkdir(parents=True)
        done = self.braid("train", "run.toml", "train.out=next")
        self.assertEqual(done.returncode, 2)
        self.assertIn("next/config.toml", done.stderr)
        self.assertFalse((self.path / "next" / "metrics.jsonl").exists())

    def test_a_run_cut_in_two_is_the_run(self):
        exact = ["train.reduction=reproducible"]
        self.assertEqual(self.braid("train", "run.toml", *exact).returncode, 0)
        done = self.braid("train", "run.toml", "train.out=rest", "train.resume=run/step-3", "mesh.data=2", *exact)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.losses("rest"), self.losses()[3:])

    def test_another_model_or_order_is_refused_with_every_difference(self):
        self.assertEqual(self.braid("train", "run.toml").returncode, 0)
        done = self.braid("train", "run.toml", "train.resume=run/step-6", "model.heads=4", "train.seed=2",
                          "train.batch=8", "train.steps=5", "train.out=next")
        self.assertEqual(done.returncode, 2)
        for line in ["model.heads = 4: must be as in run/step-6; nearest valid is 2",
                     "train.seed = 2: must be as in run/step-6; nearest valid is 1",
                     "train.batch = 8: must be as in run/step-6; nearest valid is 4",
                     "train.steps = 5: must be at least the 6 steps that run/step-6 has done; nearest valid is 6"]:
            self.assertIn(line, done.stderr)

    def test_servers_with_another_optimizer_are_refused(self):
        served = ["sync.replication=parameter-server", "mesh.data=2"]
        self.assertEqual(self.braid("train", "run.toml", *served, "optimizer.kind=adagrad").returncode, 0)
        done = self.braid("train", "run.toml", *served, "train.resume=run/step-3", "train.out=next")
        self.assertEqual(done.returncode, 2)
        self.assertIn('optimizer.kind = "adamw": must be the optimizer of run/step-3; nearest valid is "adagrad"',
                      done.stderr)

    def test_groups_have_rates_of_their_own_and_match_something(self):
        def first_losses(*words):
            self.assertEqual(self.braid("train", "run.toml", "train.overwrite=true", *words).returncode, 0)
            return self.losses()

        usual = first_losses()
        still = first_losses('optimizer.groups=[{match = "*", lr_scale = 0}]')
        self.assertEqual(still[0], usual[0])
        self.assertNotEqual(still[1:], usual[1:])
        done = self.braid("train", "run.toml", "train.out=next", 'optimizer.groups=[{match = "*.bais"}]')
        self.assertEqual(done.returncode, 2)
        self.assertIn('optimizer.groups = "*.bais": must match names of parameters, such as wte.weight', done.stderr)

    def test_replicas_that_run_apart_tell_their_mean_at_evaluations(self):
        still = ["mesh.data=2", "train.eval_every=2", "optimizer.lr=1e-30", "train.threads=1"]
        self.assertEqual(self.braid("train", "run.toml", *still, "train.out=alike").returncode, 0)
        done = self.braid("train", "run.toml", *still, "sync.replication=parameter-server", "sync.consistency=asp")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = [line for line in self.metrics() if line["kind"] == "replicas"]
        self.assertEqual([(line["step"], line["num_steps"]) for line in told], [(2, 2), (4, 2), (6, 2)])
        all_losses = self.losses("alike")
        for line in told:
            mean = sum(all_losses[line["step"] - 2:line["step"]]) / 2
            self.assertAlmostEqual(line["loss"], mean, delta=1e-5)
            own = sum(self.losses()[line["step"] - 2:line["step"]]) / 2
            self.assertGreater(abs(own - mean), 1e-4)

    def test_a_checkpoint_that_cannot_be_read_is_no_mistake_of_ours(self):
        os.symlink("loop", self.path / "loop")
        for path, why in (("no" * 200, "File name too long"), ("loop", "Too many levels of symbolic links")):
            for words in (["sample", path], ["train", "run.toml", f"train.resume={path}"],
                          ["train", "run.toml", "train.resume=latest", f"train.out={path}"]):
                done = self.braid(*words)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn(why, done.stderr)

    def test_sampling_is_a_function_of_its_options(self):
        self.assertEqual(self.braid("train", "run.toml", "mesh.tensor=2").returncode, 0)
        first = self.braid("sample", "run/step-6", "--prompt", "the ", "--tokens", "20", "--seed", "3")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertTrue(first.stdout.startswith("the "))
        again = self.braid("sample", "run/step-6", "--prompt", "the ", "--tokens", "20", "--seed", "3")
        self.assertEqual(first.stdout, again.stdout)
        greedy = [self.braid("sample", "run/step-6", "--tokens", "8", "--temperature", "0", "--seed", s).stdout
                  for s in ("1", "2")]
        self.assertEqual(greedy[0], greedy[1])

    def test_wrong_input_costs_nothing_and_is_said_at_once(self):
        done = self.braid("train", "run.toml", "model.layer=3", "train.batch=x", "mesh.tensor=3", "data.paths=[]")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        for word in ["model.layer", "train.batch", "mesh.tensor", "data.paths"]:
            self.assertIn(word, done.stderr)
        self.assertFalse((self.path / "run").exists())

    def test_a_faulty_table_of_actions_is_drawn_and_nothing_starts(self):
        (self.path / "bad.csv").write_text("0F0,0F1,0B1,0B0\n1F0,1B1,1F1,1B0\n")
        done = self.braid("train", "run.toml", "mesh.pipe=2", "pipeline.schedule=file:bad.csv")
        self.assertEqual(done.returncode, 2)
        self.assertIn(">1B1<", done.stderr)
        self.assertIn("1B1: comes before 1F1", done.stderr)
        self.assertFalse((self.path / "run").exists())

    def test_a_table_of_actions_trains_as_the_schedule_it_is(self):
        (self.path / "good.csv").write_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
        for schedule, out in (("file:good.csv", "table"), ("1f1b", "named")):
            done = self.braid("train", "run.toml", "mesh.pipe=2", f"pipeline.schedule={schedule}", f"train.out={out}")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.losses("table"), self.losses("named"))

    def test_conditions_of_a_schedule_are_said_in_keys_of_the_configuration(self):
        done = self.braid("train", "run.toml", "mesh.pipe=1", "model.layers=4", "pipeline.schedule=dualpipe",
                          "train.batch=2")
        self.assertEqual(done.returncode, 2)
        self.assertIn("mesh.pipe = 1: ", done.stderr)
        self.assertIn("train.batch = 2: makes 1 microbatch per rank, which ", done.stderr)

    def test_an_asynchronous_run_says_how_stale_it_is_and_goes_on(self):
        words = ["mesh.pipe=2", "pipeline.schedule=pipedream", "model.output_weights=untied"]
        done = self.braid("train", "run.toml", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({line["staleness"] for line in self.metrics() if line["kind"] == "step"}, {1})
        done = self.braid("train", "run.toml", *words, "train.resume=run/step-3", "train.out=again")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.losses("again"), self.losses()[3:])

    def test_a_measured_partition_is_said_written_and_kept(self):
        words = ["train", "run.toml", "mesh.pipe=2", "pipeline.partition=measured"]
        done = self.braid(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        line = next(line for line in done.stdout.splitlines() if line.startswith("cut "))
        blocks = line.split()[1]
        self.assertEqual(sum(map(float, blocks.split(","))), 2, line)
        written = f'partition = "{blocks}"'
        self.assertIn(written, (self.path / "run" / "config.toml").read_text())
        again = self.braid(*words, "train.resume=run/step-6", "train.steps=7", "train.out=again")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertNotIn("cut ", again.stdout)
        self.assertIn(written, (self.path / "again" / "config.toml").read_text())
        tight = self.braid(*words, "memory.limit_gb=0.00015", "train.out=tight")
        self.assertEqual(tight.returncode, 2)
        self.assertIn("memory.limit_gb = 0.00015: must leave room for the model", tight.stderr)
        self.assertIn("bytes over the limit; nearest valid is 0.0", tight.stderr)

    def test_missing_and_short_text_are_the_users_to_mend(self):
        done = self.braid("train", "run.toml", "data.paths=[nowhere]")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nowhere", done.stderr)
        (self.path / "short.txt").write_text("too short")
        done = self.braid("train", "run.toml", "data.paths=[short.txt]")
        self.assertEqual(done.returncode, 2)
        self.assertIn("model.context", done.stderr)

    def test_nothing_held_out_means_no_evaluation(self):
        done = self.braid("train", "run.toml", "data.validation_fraction=0", "train.eval_every=0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("validation loss", done.stdout)
        self.assertNotIn("evaluation", [line["kind"] for line in self.metrics()])

    def test_a_damaged_checkpoint_is_named_and_nothing_is_trained(self):
        self.assertEqual(self.braid("train", "run.toml").returncode, 0)
        weights = self.path / "run" / "step-6" / "model.safetensors"
        intact = weights.read_bytes()
        weights.write_bytes(intact[:-1] + bytes([intact[-1] ^ 1]))
        self.assertEqual(self.braid("sample", "run/step-6").returncode, 3)
        weights.write_bytes(intact[:-100])
        done = self.braid("sample", "run/step-6")
        self.assertEqual(done.returncode, 3)
        self.assertIn("model.safetensors", done.stderr)
        done = self.braid("train", "run.toml", "train.resume=run/step-6", "train.steps=9", "train.out=next")
        self.assertEqual(done.returncode, 3)
        self.assertFalse((self.path / "next" / "step-9").exists())

    def test_a_loss_that_is_not_finite_ends_the_run_with_its_step(self):
        done = self.braid("train", "run.toml", "optimizer.lr=1e30", "train.eval_every=0", "train.save_every=0")
        self.assertEqual(done.returncode, 3)
        self.assertIn("not finite", done.stderr)
        self.assertFalse((self.path / "run" / "step-6").exists())

    def test_a_model_that_no_memory_holds_is_no_internal_error(self):
        done = self.braid("train", "run.toml", "model.width=1000000")
        self.assertEqual(done.returncode, 2)
        self.assertIn("model.width", done.stderr)
        self.assertRegex(done.stderr, r"\d+\.\d TiB")

    def test_weights_that_are_not_finite_are_not_saved(self):
        done = self.braid("train", "run.toml", "optimizer.lr=1e39", "train.steps=1", "train.eval_every=0")
        self.assertEqual(done.returncode, 3)
        self.assertIn("not finite", done.stderr)
        self.assertFalse((self.path / "run" / "step-1").exists())


if __name__ == "__main__":
    unittest.main()
