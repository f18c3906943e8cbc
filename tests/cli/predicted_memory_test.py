"""What a run expects its fullest rank to hold: what it holds, or up to 2 % more."""
import os
import pathlib
import unittest

from braid_binary import BINARY
from tiny_run import TinyRun

SHAPE = ["model.layers=4", "model.heads=4", "model.width=192", "model.context=128", "train.batch=16", "train.microbatch=4",
         "train.steps=2", "train.save_every=0", "train.eval_every=0", "train.eval_sequences=4", "train.overwrite=true",
         'train.reduction="fast"']
LLAMA = ['model.family="llama"', "model.kv_heads=2", "model.ffn=384"]
GEMMA2 = ['model.family="gemma2"', "model.kv_heads=2", "model.ffn=384", "model.window=32", "model.attention_cap=50",
          "model.logit_cap=30"]


def frozen(*patterns):
    return ['model.output_weights="untied"',
            "optimizer.groups=[" + ", ".join(f'{{match = "{pattern}", frozen = true}}' for pattern in patterns) + "]"]


FIRST_HALF, NORMS, HEAD = frozen("w?e.*", "blocks.[01].*"), frozen("*ln_*", "*.bias"), frozen("w?e.*", "blocks.*", "ln_f.*")
MATRICES = frozen("*.weight")
LAYOUTS = [
    FIRST_HALF,
    [*frozen("blocks.[13].*"), "mesh.data=2", "sync.zero=3"],
    [],
    [*LLAMA, 'memory.recompute="full"'],
    ["model.dropout=0.1", "mesh.pipe=2", 'pipeline.schedule="gpipe"', "train.batch=48"],  # masks of 12 microbatches
    GEMMA2,
    ["mesh.data=2", "sync.zero=3"],
    [*LLAMA, "mesh.pipe=2", 'pipeline.schedule="zb-v"'],
    ["model.layers=1", "model.vocab=40000"],  # logits in two chunks
    ["mesh.data=2", 'sync.replication="parameter-server"', "train.save_every=1"],  # the servers' rank is the fullest, at a save
    ["mesh.data=2", "sync.zero=1", "train.batch=32", 'train.reduction="reproducible"'],  # trees of four microbatches
]
LAYOUTS += [["mesh.tensor=2", 'train.dtype="bfloat16"', "train.batch=4", 'train.reduction="reproducible"']]  # wide sums
SPLIT = ["mesh.tensor=2", "mesh.sequence_parallel=true"]
LAYOUTS += [[*LLAMA, *SPLIT, "mesh.pipe=2"]]
DISK = ['memory.optimizer="disk"', "memory.chunk_mb=0.25", f'memory.paths=["{pathlib.Path(BINARY).parent}"]']
LAYOUTS += [[*DISK, *LLAMA, "mesh.data=2", "sync.zero=1", 'train.dtype="bfloat16"', "train.batch=8"]]
LAYOUTS += [[*DISK, "mesh.data=2", "sync.zero=2", 'train.dtype="bfloat16"'], [*DISK, "checkpoint.async=true"]]
GRADIENTS, PARAMETERS = [*DISK, 'memory.gradients="disk"'], [*DISK, 'memory.parameters="disk"']
BOTH = [*GRADIENTS, 'memory.parameters="disk"']
TABLE = ["model.vocab=16384", "model.width=384", "train.batch=1", "train.microbatch=1"]  # 3.6 times as large as a block, few tokens
LAYOUTS += [[*BOTH, *TABLE], [*PARAMETERS, "mesh.data=2", "sync.zero=1"], [*BOTH, *LLAMA, "mesh.data=2"], [*BOTH, "memory.limit_gb=0.0375"]]  # some parameters stay
ACTIVATIONS = ['memory.activations="disk"', DISK[2]]
LAYOUTS += [[*ACTIVATIONS, *LLAMA], [*ACTIVATIONS, "mesh.pipe=2", 'pipeline.schedule="zb-h1"']]
SOME = [*ACTIVATIONS, 'memory.activation_blocks="2"']  # of four
LAYOUTS += [[*ACTIVATIONS, "mesh.pipe=2", 'memory.activation_blocks="1,0"', 'memory.recompute="blocks:1,none"'],
            [*ACTIVATIONS, "model.layers=8", "mesh.pipe=2", 'pipeline.schedule="looped-bfs"', "pipeline.chunks=2",
             'memory.activation_blocks="2,2,0,0"']]
ZB_V, INTERLEAVED = ["mesh.pipe=2", 'pipeline.schedule="zb-v"'], ["mesh.pipe=2", 'pipeline.schedule="interleaved"', "pipeline.chunks=2"]
LAYOUTS += [[*ACTIVATIONS, *ZB_V], [*ACTIVATIONS, *INTERLEAVED, "model.layers=8", 'memory.recompute="none,none,full,full"'],
            [*ACTIVATIONS, *BOTH, 'memory.activation_blocks="3"'], [*ACTIVATIONS, *GRADIENTS, "mesh.pipe=2"]]
ROUNDED = ['optimizer.state_dtype="bfloat16"']
LAYOUTS += [[*ROUNDED, *LLAMA, "mesh.data=2", "sync.zero=1", 'train.dtype="bfloat16"', "train.batch=8", "checkpoint.async=true"]]
CODED = ['optimizer.state_dtype="int8"']
LAYOUTS += [[*DISK, *CODED, 'train.dtype="bfloat16"', "train.batch=8"]]
LAYOUTS += [["mesh.pipe=2", 'memory.recompute="blocks:1,none"']]
REPRODUCIBLE, HALF = ['train.reduction="reproducible"'], ['train.dtype="float16"']
RING_OF_PAIRS = ["mesh.context=4", 'mesh.context_parallel="ulysses-ring"', "mesh.ulysses_ranks=2"]
FIRST_BLOCK = frozen("w?e.*", "blocks.0.*")
LAYOUTS += [[*LLAMA, *SPLIT, *REPRODUCIBLE], HALF]
if os.environ.get("BRAID_FULL"):
    LAYOUTS += [
        [*FIRST_HALF, "mesh.pipe=2", 'pipeline.schedule="zb-h1"'], [*GEMMA2, "mesh.pipe=2", 'memory.recompute="selective"'],
        [*LLAMA, "mesh.data=2", "sync.zero=2"], ["mesh.data=2", 'sync.replication="diloco"', "sync.period=2"],
        ['optimizer.kind="muon"'], [*LLAMA, "mesh.data=2", "sync.zero=3", 'sync.zero_gather="stage"'], DISK, ROUNDED,
        ["mesh.context=2", "mesh.pipe=2", 'pipeline.schedule="zb-h1"'], ["mesh.data=2", "sync.zero=1", "mesh.pipe=2", "checkpoint.async=true"],
        [*DISK, *ROUNDED, "mesh.data=2", "sync.zero=1"], [*CODED, "mesh.data=2", "sync.zero=1", "checkpoint.async=true"],
        ['memory.recompute="blocks:0+2-3/2"'], ["mesh.pipe=2", 'memory.recompute="full,none"'], [*GRADIENTS, *FIRST_BLOCK],
        *[[*tiers, *replicas] for tiers in (DISK, GRADIENTS, PARAMETERS, BOTH) for replicas in (
            ["mesh.data=2", "sync.zero=1"], ["mesh.data=2", "sync.zero=2"], ["mesh.data=2", "sync.zero=3"], ["mesh.context=2", "sync.zero=3"], ["mesh.data=2"])],
        *[[*ACTIVATIONS, *more] for more in (
            [], GEMMA2, DISK, ["model.layers=8"], ["mesh.pipe=2"], ["mesh.pipe=2", 'pipeline.schedule="gpipe"'],
            ["mesh.data=2", "sync.zero=3"], ["mesh.tensor=2"], ["mesh.context=2"], FIRST_HALF, ["model.dropout=0.1"],
            ['memory.recompute="full"'], ['memory.recompute="blocks:0+2-3/2"'],
            ['train.dtype="bfloat16"', "train.batch=4"], ['train.reduction="reproducible"'],
            ["model.layers=1", "model.vocab=40000"], INTERLEAVED, [*ZB_V, "model.layers=8"], [*ZB_V, *LLAMA],
            ["mesh.pipe=2", 'pipeline.schedule="interleaved-zb"', "pipeline.chunks=2"],
            [*INTERLEAVED, "model.layers=8", 'memory.recompute="none,full,full,none"'], [*BOTH, 'memory.activation_blocks="2"'])],
        *[[*SOME, *more] for more in (
            [], LLAMA, GEMMA2, DISK, ["model.layers=8"], [*BOTH, "model.layers=8"], ['memory.recompute="blocks:2-3"'], ['memory.recompute="full"'],
            ['memory.recompute="blocks:0-1"'], ['memory.recompute="selective"'], ["model.dropout=0.1"], ["mesh.data=2", "sync.zero=3"],
            ["mesh.tensor=2"], ['train.dtype="bfloat16"', "train.batch=4"], ["model.layers=8", "mesh.pipe=2"],
            ["model.layers=8", "mesh.pipe=2", 'pipeline.schedule="gpipe"'], ["model.layers=8", "mesh.pipe=2", 'pipeline.schedule="zb-h1"'],
            ["model.layers=8", "mesh.pipe=2", 'memory.recompute="blocks:2,none"'])],
        [*BOTH, "memory.limit_gb=0.05", "mesh.data=2", "sync.zero=3"], [*BOTH, "memory.limit_gb=0.05", "mesh.pipe=2"],
        *[[*SPLIT, *REPRODUCIBLE, *more] for more in (
            [], [*LLAMA, "mesh.tensor=4"], [*LLAMA, "model.width=256", "model.context=256"], ['memory.recompute="selective"'],
            [*LLAMA, 'memory.recompute="selective"'], [*LLAMA, 'train.dtype="bfloat16"'], [*LLAMA, *HALF], [*LLAMA, "train.batch=32"],
            [*LLAMA, "train.microbatch=1"], [*LLAMA, "mesh.data=2", "sync.zero=3"], [*LLAMA, "mesh.pipe=2"])],
        *[[*HALF, *more] for more in (
            LLAMA, GEMMA2, REPRODUCIBLE, ['memory.recompute="selective"'], ['memory.recompute="full"'], ["mesh.pipe=2"], SPLIT,
            ["mesh.tensor=2"], ["mesh.data=2", "sync.zero=3"], FIRST_HALF, ["model.dropout=0.1"],
            ["mesh.pipe=2", 'pipeline.schedule="zb-h1"'])],
        *[[f"model.heads={heads}", *more, f'memory.recompute="{recompute}"'] for heads in (3, 4) for recompute in ("none", "selective")
          for more in (RING_OF_PAIRS, ["mesh.context=2", 'mesh.context_parallel="ulysses"'], [*RING_OF_PAIRS, 'train.dtype="bfloat16"'])],
        *[[*tiers, *more] for tiers in (GRADIENTS, PARAMETERS, BOTH) for more in (
            LLAMA, FIRST_BLOCK, FIRST_HALF, ['memory.recompute="selective"'], ['memory.recompute="full"'], ["mesh.pipe=2"],
            ['memory.recompute="blocks:0-1"'], ["mesh.pipe=2", 'pipeline.schedule="interleaved"', "pipeline.chunks=2"],
            ["mesh.pipe=2", 'pipeline.schedule="dualpipe"'], ["mesh.pipe=2", 'pipeline.schedule="zb-h1"'], REPRODUCIBLE,
            ['model.output_weights="untied"'], ['train.dtype="bfloat16"', "train.batch=4"], [*LLAMA, 'memory.recompute="full"'])],
        GRADIENTS, BOTH, [*BOTH, "mesh.data=2", "sync.zero=3", 'train.reduction="reproducible"'], [*BOTH, "mesh.pipe=2"],
        [*GRADIENTS, "mesh.data=2", "sync.zero=2"], [*BOTH, "mesh.tensor=2"],
        [*PARAMETERS, "train.microbatch=16", 'memory.recompute="full"'],
        *[[f'memory.recompute="blocks:{blocks}"', *more] for blocks in ("0-1", "3", "1-2/2", "0-2/3") for more in (
            [], LLAMA, GEMMA2, ["model.dropout=0.1"], ["mesh.data=2", "sync.zero=3"], ["mesh.tensor=2"], FIRST_HALF,
            ['train.dtype="bfloat16"', "train.batch=4"], ["mesh.context=2"])],
        *[["mesh.pipe=2", f'memory.recompute="{policies}"', *more] for policies, more in (
            ("blocks:0-1/2,none", []), ("blocks:1,none", []), ("blocks:0,none", ['pipeline.schedule="gpipe"']),
            ("blocks:0+2,blocks:0", ['pipeline.partition="2.5,1.5"']))],
        NORMS, HEAD, MATRICES, frozen("w?e.*"), frozen("blocks.[13].*"), frozen("head.*"), frozen("blocks.[23].*", "ln_f.*"),
        *[[*groups, *more] for groups in (FIRST_HALF, NORMS, HEAD, MATRICES, frozen("blocks.[02].*")) for more in (
            ["mesh.data=2", "sync.zero=1"], ["mesh.pipe=2"], ["mesh.tensor=2"],
            ['memory.recompute="full"'], ['train.dtype="bfloat16"', "train.batch=4"], ["model.dropout=0.1"])],
        *[[*groups, *more] for groups in (FIRST_HALF, NORMS, MATRICES) for more in (
            ["mesh.data=2", "sync.zero=2"], ["mesh.data=2", "sync.zero=3"], ['memory.recompute="selective"'])],
        *[[*groups, "mesh.pipe=2", 'pipeline.schedule="zb-v"'] for groups in (FIRST_HALF, NORMS)],
        ['memory.recompute="selective"'],
        ["mesh.pipe=2", 'pipeline.schedule="zb-h1"'],
        ["mesh.pipe=2", 'pipeline.schedule="pipedream"', 'model.output_weights="untied"'],
        ["mesh.pipe=2", 'pipeline.partition="2.5,1.5"'],
        ["mesh.data=2", 'optimizer.kind="sgd"', "optimizer.momentum=0", 'sync.compression="top-k"'],
        LLAMA,
        *[[*GEMMA2, *more] for more in (
            ['memory.recompute="full"'], ['memory.recompute="selective"'], ["mesh.pipe=2"], ["mesh.data=2", "sync.zero=3"],
            ["mesh.tensor=2"], ['train.dtype="bfloat16"', "train.batch=4"], ["mesh.pipe=2", 'pipeline.schedule="zb-h1"'])],
        ['memory.recompute="full"'],
        [*LLAMA, 'memory.recompute="selective"'],
        [*LLAMA, 'train.dtype="bfloat16"', "train.batch=4"],
        ["mesh.data=2", "sync.zero=1"],
        ["mesh.data=2", "sync.zero=2"],
        [*LLAMA, "mesh.data=2", "sync.zero=3"],
        [*LLAMA, "mesh.tensor=2"],
        [*LLAMA, "mesh.tensor=4"],  # two ranks hold each key head
        ["mesh.tensor=2"],
        *[[*SPLIT, *more] for more in (
            [], LLAMA, GEMMA2, ["model.dropout=0.1"], ['memory.recompute="full"'], ['memory.recompute="selective"'],
            [*LLAMA, 'memory.recompute="selective"'], ["mesh.pipe=2"], ["mesh.pipe=2", 'pipeline.schedule="zb-h1"'],
            [*LLAMA, "mesh.pipe=2", 'pipeline.schedule="zb-h1"'], ["mesh.pipe=2", 'pipeline.schedule="gpipe"'],
            ["mesh.data=2", "sync.zero=3"], ['train.dtype="bfloat16"', "train.batch=4"],
            ["model.layers=1", "model.vocab=40000"], ["train.microbatch=1"], [*LLAMA, "mesh.tensor=4"])],
        *[["mesh.context=2", f'mesh.context_parallel="{form}"', *more] for form in ("ring", "all-gather", "ulysses") for more in (
            [], LLAMA, GEMMA2, ["mesh.context=4"], ['memory.recompute="full"'], ['memory.recompute="selective"'], ["mesh.pipe=2"],
            ["mesh.data=2", "sync.zero=2"], ["sync.zero=3"], ["mesh.tensor=2"], SPLIT,
            ['train.dtype="bfloat16"', "train.batch=4"], ["mesh.pipe=2", 'pipeline.schedule="zb-h1"'])],
        ["mesh.context=4", 'mesh.context_parallel="ulysses-ring"', "mesh.ulysses_ranks=2"],
        [*LLAMA, "mesh.pipe=2"],
        ["mesh.pipe=2", 'pipeline.schedule="gpipe"'],
        ["mesh.pipe=2", 'pipeline.schedule="interleaved"', "pipeline.chunks=2"],
        ["mesh.pipe=2", 'pipeline.schedule="dualpipe"'],
        ["mesh.pipe=4"],
        *[[*more, 'train.reduction="reproducible"'] for more in (
            [], LLAMA, ["mesh.data=2", "sync.zero=2"], ["mesh.data=2", "sync.zero=3"], ["mesh.tensor=2"], ["mesh.pipe=2"],
            ["mesh.pipe=2", 'pipeline.schedule="zb-h1"'], [*LLAMA, "mesh.tensor=4"], ["mesh.pipe=2", "mesh.data=2"],
            [*LLAMA, *SPLIT], [*SPLIT, 'train.dtype="bfloat16"', "train.batch=4"], GEMMA2, ['memory.recompute="selective"'],
            ["model.layers=1", "model.vocab=40000", "mesh.tensor=2"], ["mesh.tensor=2", 'memory.recompute="full"'])],
        *[["model.dropout=0.1", *more] for more in (
            [], LLAMA, ["mesh.tensor=2"], ['train.dtype="bfloat16"'],
            ['memory.recompute="selective"'], [*LLAMA, 'memory.recompute="selective"'], ['memory.recompute="full"'],
            ["mesh.pipe=2", 'pipeline.schedule="gpipe"', 'memory.recompute="selective"'],
            ["mesh.pipe=2"], ["mesh.pipe=4"], [*LLAMA, "mesh.pipe=4"], ["mesh.pipe=2", 'pipeline.schedule="zb-h1"'],
            ["mesh.pipe=4", 'pipeline.schedule="zb-h1"'])],
        ["mesh.data=4", 'sync.replication="parameter-server"', "sync.servers=2", "sync.push_every=2"],
        ["mesh.data=2", 'sync.replication="parameter-server"', 'optimizer.kind="sgd"', "optimizer.clip_norm=0"],
        *[["mesh.data=2", 'sync.replication="parameter-server"', 'sync.servers_on="own"', 'run.ranks="processes"',
           f"sync.servers={servers}", "train.batch=2", "train.microbatch=1", "train.save_every=1"]
          for servers in (1, 2)],  # a worker is the fullest, at a save
        ['optimizer.kind="sgd"', "optimizer.momentum=0"],
        ['optimizer.kind="sgd"'],
        ['optimizer.kind="lion"'],
        ['optimizer.kind="adagrad"'],
        [*LLAMA, "mesh.data=2", "sync.zero=1", 'optimizer.kind="muon"'],
        ["mesh.pipe=2", "mesh.data=2", "sync.zero=3", 'sync.zero_gather="stage"'],
        *[[*tiers, *CODED, *more] for tiers in ([], DISK, GRADIENTS, PARAMETERS, BOTH) for more in (
            [], ['train.dtype="bfloat16"', "train.batch=4"], ['optimizer.kind="lion"'], ["memory.chunk_mb=4"])],
        *[[*CODED, *more] for more in (LLAMA, ["mesh.data=2", "sync.zero=3"], ["mesh.pipe=2", 'pipeline.schedule="zb-h1"'])],
        *[[*ROUNDED, *more] for more in (
            ['optimizer.kind="lion"'], ["mesh.data=2", "sync.zero=3"], ["mesh.tensor=2"], FIRST_HALF,
            ["mesh.data=2", 'sync.replication="diloco"', "sync.period=2"])],
        *[[*tiers, *ROUNDED, *more] for tiers in (DISK, GRADIENTS, PARAMETERS, BOTH) for more in (
            [], ['train.dtype="bfloat16"', "train.batch=4"], ['optimizer.kind="lion"'], ["memory.chunk_mb=4"])],
        *[[*DISK, *more] for more in (
            ["optimizer.clip_norm=0"], ["mesh.pipe=2", 'pipeline.schedule="zb-h1"'], ["mesh.tensor=2"], LLAMA, GEMMA2,
            ["mesh.data=2", "sync.zero=3"], ['memory.recompute="full"'], ['optimizer.kind="lion"'], ["memory.chunk_mb=4"],
            ['optimizer.kind="sgd"', "optimizer.momentum=0"], ['train.dtype="bfloat16"', "train.batch=4"], FIRST_HALF)],
        *[["mesh.data=2", f'sync.compression="{kind}"'] for kind in ("bfloat16", "one-bit", "eight-bit", "power-sgd")],
    ]


class PredictedMemory(TinyRun):
    def test_is_never_below_what_is_held_and_at_most_a_fiftieth_above(self):
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                self.trained(*SHAPE, *layout)
                self.assert_memory_as_predicted()

    def test_bytes_moved_on_disk_are_those_that_are_predicted(self):
        never_clipped = "optimizer.clip_norm=1000"  # but the update of the first step waits for the norm
        dualpipe = ["mesh.pipe=2", 'pipeline.schedule="dualpipe"']
        for layout in ([*DISK, never_clipped], [*BOTH, *dualpipe, never_clipped], [*ACTIVATIONS, *dualpipe], [*BOTH, "mesh.data=2"], [*ACTIVATIONS, *ZB_V],
                       [*BOTH, "optimizer.clip_norm=0"], [*BOTH, *FIRST_HALF, never_clipped], ACTIVATIONS,
                       [*DISK, "mesh.data=2", "sync.zero=1", 'train.dtype="bfloat16"', 'optimizer.state_dtype="int8"']):
            with self.subTest(layout=layout):
                done = self.trained(*SHAPE, *layout, "train.log_every=1")
                said, = [line["disk_bytes"] for line in self.metrics() if line["kind"] == "prediction"]
                last = [line["disk_bytes"] for line in self.metrics() if line["kind"] == "step"][-1]
                self.assertAlmostEqual(said / last, 1, delta=0.02)
                self.assertRegex(done.stdout, r"(?m)^moved on disk in a step .* %$")


if __name__ == "__main__":
    unittest.main()
