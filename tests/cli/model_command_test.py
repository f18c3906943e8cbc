"""braid model as a user calls it: the list, JSON, what is refused."""
import json
import pathlib
import tempfile
import unittest

from braid_binary import braid

RUN = """
[model]
layers = 3
heads = 4
width = 32
context = 16
vocab = 320
dropout = 0.1
[mesh]
tensor = 2
"""


class ModelCommand(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        (self.path / "run.toml").write_text(RUN)

    def model(self, *words, code=0):
        done = braid("model", "run.toml", *words, cwd=self.path)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr if code else done.stdout

    def test_lists_each_kind_of_block_once(self):
        text = self.model("train.microbatch=2")
        self.assertIn("blocks.0 of 3\n", text)
        row = next(line for line in text.splitlines() if "attention.qkv.weight" in line)
        self.assertEqual(row.split(), ["linear", "btc,[kmd|kd|kd]c->bt[kmd|kd|kd]", "[2,", "16,", "48]", "attention.qkv.weight"])
        self.assertIn("all-reduce over tensor in forward of blocks.0 mlp.down.weight: 4.0 KiB\n", text)

    def test_json_adds_up(self):
        model = json.loads(self.model("--json", "mesh.tensor=1"))
        self.assertEqual(model["collectives"], [])
        layer = 12 * 32 * 32 + 13 * 32
        self.assertEqual(model["totals"]["parameters"], 3 * layer + (320 + 16) * 32 + 2 * 32)
        self.assertEqual(model["totals"]["flops"], sum(op["count"] * op["flops"] for op in model["ops"]))
        self.assertEqual({op["count"] for op in model["ops"]}, {1, 3})

    def test_json_says_what_is_split_and_summed_where(self):
        model = json.loads(self.model("--json"))
        ops = {op["name"]: op for op in model["ops"]}
        self.assertEqual(len(ops), len(model["ops"]))
        self.assertEqual(ops["blocks.0.1"]["parameters"], ["attention.qkv.weight"])
        self.assertEqual(ops["blocks.0.1"]["layout"], {"tensor": "k"})
        self.assertEqual(ops["blocks.0.0"]["layout"], {})
        self.assertEqual({ops[each["op"]]["kind"] for each in model["collectives"]}, {"lookup", "linear", "loss"})

    def test_frozen_parameters_are_marked_and_need_no_backward(self):
        words = ['optimizer.groups=[{match = "w?e.*", frozen = true}, {match = "blocks.[01].*", frozen = true}]',
                 'model.output_weights="untied"']
        text = self.model(*words)
        self.assertRegex(text, r"lookup .* wte\.weight \(frozen\)\n")
        self.assertIn("blocks.0 of 2\n", text)
        self.assertIn("blocks.2\n", text)
        self.assertIn("all-reduce over tensor in forward of blocks.0 mlp.down.weight", text)
        self.assertIn("all-reduce over tensor in backward of blocks.2 attention.qkv.weight", text)
        self.assertNotIn("in backward of blocks.0", text)
        ops = {op["name"]: op for op in json.loads(self.model("--json", *words))["ops"]}
        self.assertEqual((ops["blocks.0.1"]["frozen"], ops["blocks.0.1"]["kept_bytes"]), (["attention.qkv.weight"], 0))
        self.assertEqual(ops["blocks.2.1"]["frozen"], [])
        self.assertIn("must match", self.model('optimizer.groups=[{match = "blocks.3.*"}]', code=2))

    def calls(self, *words):
        calls = json.loads(self.model("--json", "mesh.context=2", "mesh.tensor=1", *words))["collectives"]
        return {(each["axis"], each["kind"], each["pass"], each["times"], each["bytes"]) for each in calls}

    # Microbatches of 4 x 16 tokens of width 32 in float32: a rank's outputs have 4 KiB, its keys and values 8 KiB.
    def test_collectives_of_context_ranks(self):
        text = self.model("mesh.context=2", "mesh.tensor=1")
        self.assertIn("send-receive over context in backward of blocks.0 attention: 3 x ", text)
        self.assertNotIn("not executed", text)
        unit = 4 * 8 * 32 * 4
        placed = {("context", "send-receive", way, 1, size) for way in ("forward", "backward") for size in (1.5 * unit, 0.5 * unit)}
        self.assertEqual(self.calls(), placed | {("context", "send-receive", "forward", 1, 2 * unit),
                                                 ("context", "send-receive", "backward", 3, 2 * unit)})
        self.assertEqual(self.calls("mesh.context_parallel=all-gather"),
                         placed | {("context", "all-gather", "forward", 1, 4 * unit), ("context", "all-gather", "backward", 2, 4 * unit)})
        self.assertEqual(self.calls("mesh.context_parallel=ulysses"),
                         {("context", "all-to-all", way, 1, size) for way in ("forward", "backward") for size in (3 * unit, unit)})

    def test_dot_has_an_edge_for_each_value(self):
        dot = self.model("--dot", "model.dropout=0")
        self.assertEqual(dot.count("subgraph"), 3)
        self.assertIn('label="3 layers"', dot)
        self.assertIn('2 [label="layer norm\\nln_1.weight\\nln_1.bias\\n[4, 16, 32]"]', dot)
        edges = [line.split() for line in dot.splitlines() if "->" in line]
        residuals = [edge for edge in edges if int(edge[2]) - int(edge[0]) > 1]
        self.assertEqual(residuals, [["1", "->", "8"], ["8", "->", "15"]])

    def test_a_vocabulary_is_needed(self):
        self.assertIn("model.vocab", self.model("model.vocab=0", "data.tokenizer=other.json", code=2))


if __name__ == "__main__":
    unittest.main()
