// Messages about wrong files: one value at a time, and many at once.
#include "tests/spec/complaint.h"

namespace braid::spec::bad_input_test {
namespace {

const std::string kUntied = "model.output_weights=untied";

TEST(BadInput, TomlThatIsNoToml) {
  expect_complaints({
      {"[model\nlayers = 3\n", {}, "run.toml:2:7: is not TOML: ..."},
      {"[!]\n", {}, "run.toml:2:2: is not TOML: ..."},
      {"[[[model]]]\n", {}, "run.toml:2:3: is not TOML: ..."},
      {"[model]\nlayers 3\n", {}, "run.toml:3:8: is not TOML: ..."},
      {"[model]\nlayers = 3\nlayers = 4\n", {}, "run.toml:4:10: is not TOML: ..."},
      {"[pipeline]\nschedule = 1f1b\n", {}, "run.toml:3:13: is not TOML: ..."},
      {"[train]\nout = \"runs\n", {}, "run.toml:3:12: is not TOML: ..."},
      {"[data]\npaths = [\"corpus.txt\"\n", {}, "run.toml:2:23: is not TOML: ..."},
  });
}

TEST(BadInput, UnknownSectionsAndKeys) {
  expect_complaints({
      {"[modle]\nlayers = 3\n", {}, "[modle]: is not a known section; nearest valid is [model]"},
      {"[optimiser]\nlr = 1.0\n", {}, "[optimiser]: is not a known section; nearest valid is [optimizer]"},
      {"[quantization]\nbits = 4\n", {}, "[quantization]: is not a known section"},
      {"[model]\nhead = 4\n", {}, "model.head = 4: is not a known key; nearest valid is model.heads"},
      {"[model]\nn_layers = 4\n", {}, "model.n_layers = 4: is not a known key; nearest valid is model.layers"},
      {"[model]\nlr = 0.3\n", {}, "model.lr = 0.3: is not a known key; nearest valid is optimizer.lr"},
      {"[train]\neval_batches = 4\n",
       {},
       "train.eval_batches = 4: is not a known key; nearest valid is train.eval_sequences"},
      {"[pipeline]\nvalidation = \"after\"\n", {}, "pipeline.validation = \"after\": is not a known key"},
      {"[sync]\nserver_optimizer = \"sgd\"\n",
       {},
       "sync.server_optimizer = \"sgd\": is not a known key; nearest valid is optimizer.kind"},
      {"[mesh]\nzero = 3\n", {}, "mesh.zero = 3: is not a known key; nearest valid is sync.zero"},
      {"[mesh]\nsize = {data = 2, tensor = 1}\n",
       {},
       "mesh.size = {data = 2, tensor = 1}: is not a known key; nearest valid is mesh.pipe"},
      {"[data]\npath = [\"corpus.txt\"]\n",
       {},
       "data.path = [\"corpus.txt\"]: is not a known key; nearest valid is data.paths"},
      {"layers = 6\n", {}, "layers = 6: must be in a section; nearest valid is model.layers"},
      {"model = 3\n", {}, "model = 3: must be a section, written [model]"},
      {"[[train]]\nsteps = 3\n", {}, "train = [{steps = 3}]: must be a section, written [train]"},
  });
}

TEST(BadInput, GroupsOfParameters) {
  const std::string rates = "optimizer.groups = [{match = \"*\", lr_scale = -1}]: must have finite rates of at least 0";
  expect_complaints({
      {"[[optimizer.groups]]\nmatch = \"*\"\nlr_scale = -1\n", {}, rates},
      {"", {"optimizer.groups=[{match = \"*\", lr_scale = -1}]"}, rates},
      {"[[optimizer.groups]]\nlr_scale = 2\n",
       {},
       "optimizer.groups = [{match = \"\", lr_scale = 2}]: must have a match that is not empty in every group"},
      {"[[optimizer.groups]]\nmatch = \"*\"\nlr = 2\n",
       {},
       "optimizer.groups = [{match = \"*\", lr = 2}]: has no key lr in its groups, but match, lr_scale, "
       "weight_decay and frozen"},
      {"[[optimizer.groups]]\nmatch = \"*\"\nfrozen = 1\n",
       {},
       "optimizer.groups = [{match = \"*\", frozen = 1}]: must have true or false for frozen"},
      {"[[optimizer.groups]]\nmatch = \"*.bias\"\nfrozen = true\nlr_scale = 2\n",
       {},
       "optimizer.groups = [{match = \"*.bias\", lr_scale = 2, frozen = true}]: must have no rates in a group that is "
       "frozen"},
      {"[[optimizer.groups]]\nmatch = 3\n", {}, "optimizer.groups = [{match = 3}]: must have a string for match"},
      {"[optimizer]\ngroups = [\"*.bias\"]\n", {}, "optimizer.groups = [\"*.bias\"]: must be a list of tables"},
  });
}

// Names are compared with the model's in the message that has all other problems.
TEST(BadInput, GroupsWithoutParametersOfTheirOwn) {
  const std::string split =
      "mesh.tensor = 3: must divide the 256 tokens of a sequence that a rank has, which sequence parallelism splits; "
      "nearest valid is 2";
  expect_complaints({
      {"", {"optimizer.groups=[{match = \"head.*\"}, {match = \"*\", frozen = true}]", kUntied}, "accepted"},
      {"",
       {"optimizer.groups=[{match = \"*.bias\", frozen = true}, {match = \"ln_f.bias\", frozen = true}]"},
       "accepted"},
      {"",
       {"model.heads=6", "model.width=96", "mesh.tensor=3", "mesh.sequence_parallel=true",
        "optimizer.groups=[{match = \"blocks.9.*\", frozen = true}, {match = \"nope\"}]"},
       split +
           "\noptimizer.groups = \"blocks.9.*\": must match names of parameters, such as wte.weight or ln_f.bias\n" +
           "optimizer.groups = \"nope\": must match names of parameters, such as wte.weight or ln_f.bias"},
      {"",
       {"optimizer.groups=[{match = \"*\", frozen = true}]", "mesh.sequence_parallel=true"},
       "optimizer.groups = [{match = \"*\", frozen = true}]: must leave parameters to train, such as ln_f.bias\n"
       "mesh.sequence_parallel = true: must be false when mesh.tensor is 1: there are no ranks to split tokens over; "
       "nearest "
       "valid is false"},
      {"",
       {"optimizer.groups=[{match = \"*\", lr_scale = 2}, {match = \"wte.*\", frozen = true}]"},
       "optimizer.groups = \"wte.*\": must come before the groups that match its parameters: the first that matches "
       "counts"},
      {"",
       {"optimizer.groups=[{match = \"blocks.9.*\"}]", "model.layers=0"},
       "model.layers = 0: must be at least 1; nearest valid is 1"},
  });
}

TEST(BadInput, WrongTypes) {
  expect_complaints({
      {"[model]\nlayers = \"six\"\n", {}, "model.layers = \"six\": must be an integer"},
      {"[model]\nlayers = \"6\"\n", {}, "model.layers = \"6\": must be an integer; nearest valid is 6"},
      {"[model]\nwidth = 384.0\n", {}, "model.width = 384.0: must be an integer; nearest valid is 384"},
      {"[train]\nsteps = 1e3\n", {}, "train.steps = 1000.0: must be an integer; nearest valid is 1000"},
      {"[train]\nseed = true\n", {}, "train.seed = true: must be an integer"},
      {"[train]\nseed = -0.5\n", {}, "train.seed = -0.5: must be an integer; nearest valid is 0"},
      {"[optimizer]\nlr = \"3e-4\"\n", {}, "optimizer.lr = \"3e-4\": must be a number; nearest valid is 3e-04"},
      {"[optimizer]\nlr = \"fast\"\n", {}, "optimizer.lr = \"fast\": must be a number"},
      {"[train]\nout = 7\n", {}, "train.out = 7: must be a string; nearest valid is \"7\""},
      {"[train]\nreduction = 7\n", {}, "train.reduction = 7: must be \"fast\" or \"reproducible\""},
      {"[train]\nresume = false\n", {}, "train.resume = false: must be a string"},
      {"[train]\nout = \"run\\u0000s\"\n", {}, "train.out = \"run\\u0000s\": must not hold a NUL"},
      {"[data]\npaths = [\"a\\u0000b\"]\n", {}, "data.paths = [\"a\\u0000b\"]: must not hold a NUL"},
      {"[train]\nout = 2026-01-31\n", {}, "train.out = 2026-01-31: must be a string"},
      {"[data]\npaths = \"corpus.txt\"\n",
       {},
       "data.paths = \"corpus.txt\": must be a list of strings; nearest valid is [\"corpus.txt\"]"},
      {"[data]\npaths = [\"a.txt\", 2]\n", {}, "data.paths = [\"a.txt\", 2]: must be a list of strings"},
      {"[pipeline]\npartition = 6\n", {}, "pipeline.partition = 6: must be a string or list of numbers"},
      {"[pipeline]\npartition = [[6]]\n", {}, "pipeline.partition = [[6]]: must be a string or list of numbers"},
      {"[pipeline]\npartition = []\n", {}, "pipeline.partition = []: must be a string or list of numbers"},
      {"[pipeline]\nspeeds = 2\n", {}, "pipeline.speeds = 2: must be a list of numbers"},
  });
}

TEST(BadInput, ValuesOutOfRange) {
  expect_complaints({
      {"[model]\nlayers = 0\n", {}, "model.layers = 0: must be at least 1; nearest valid is 1"},
      {"[model]\ncontext = 99999999999\n",
       {},
       "model.context = 99999999999: must be at most 2147483647; nearest valid is 2147483647"},
      {"[model]\nvocab = 20000000\n",
       {},
       "model.vocab = 20000000: must be at most 16777216; nearest valid is 16777216"},
      {"[model]\ndropout = -0.1\n", {}, "model.dropout = -0.1: must be at least 0 and less than 1; nearest valid is 0"},
      {"[model]\ndropout = 1\n", {}, "model.dropout = 1: must be at least 0 and less than 1"},
      {"[model]\ninit_std = 0.0\n", {}, "model.init_std = 0: must be more than 0"},
      {"[data]\npaths = [\"a\"]\nvalidation_fraction = 1.0\n",
       {},
       "data.validation_fraction = 1: must be at least 0 and at most 0.9; nearest valid is 0.9"},
      {"[mesh]\ntensor = -2\n", {}, "mesh.tensor = -2: must be at least 1; nearest valid is 1"},
      {"[mesh]\ndata = 5000\n", {}, "mesh.data = 5000: must be at most 4096; nearest valid is 64"},
      {"[sync]\nbucket_mb = 0\n", {}, "sync.bucket_mb = 0: must be more than 0"},
      {"[optimizer]\nlr = nan\n", {}, "optimizer.lr = nan: must be a finite number"},
      {"[optimizer]\nclip_norm = inf\n", {}, "optimizer.clip_norm = inf: must be a finite number"},
      {"[optimizer]\nbeta1 = 1.0\n", {}, "optimizer.beta1 = 1: must be at least 0 and less than 1"},
      {"[optimizer]\nlr = -1e-3\n", {}, "optimizer.lr = -0.001: must be at least 0; nearest valid is 0"},
      {"[train]\nseed = -1\n", {}, "train.seed = -1: must be at least 0; nearest valid is 0"},
      {"[train]\nthreads = 5000\n", {}, "train.threads = 5000: must be at most 256; nearest valid is 256"},
      {"[train]\nout = \"\"\n", {}, "train.out = \"\": must not be empty"},
      {"[train]\nsample_tokens = 0\n", {}, "train.sample_tokens = 0: must be at least 1; nearest valid is 1"},
  });
}

TEST(BadInput, UnknownWords) {
  expect_complaints({
      {"[pipeline]\nschedule = \"1f1bb\"\n",
       {},
       "pipeline.schedule = \"1f1bb\": must be " + schedules() + "; nearest valid is \"1f1b\""},
      {"[pipeline]\nschedule = \"1F1B\"\n",
       {},
       "pipeline.schedule = \"1F1B\": must be " + schedules() + "; nearest valid is \"1f1b\""},
      {"[pipeline]\nschedule = \"GPIPE\"\n",
       {},
       "pipeline.schedule = \"GPIPE\": must be " + schedules() + "; nearest valid is \"gpipe\""},
      {"", {"Train.Steps=3"}, "Train.Steps = 3: is not a known key; nearest valid is train.steps"},
      {"[TRAIN]\nsteps = 3\n", {}, "[TRAIN]: is not a known section; nearest valid is [train]"},
      {"[pipeline]\nschedule = \"zero-bubble\"\n", {}, "pipeline.schedule = \"zero-bubble\": must be " + schedules()},
      {"[train]\ndtype = \"bfloat\"\n",
       {},
       "train.dtype = \"bfloat\": must be \"float32\", \"float64\", \"bfloat16\" or \"float16\"; nearest valid is "
       "\"bfloat16\""},
      {"[train]\nreduction = \"reproducable\"\n",
       {},
       "train.reduction = \"reproducable\": must be \"fast\" or \"reproducible\"; nearest valid is \"reproducible\""},
      {"[optimizer]\nschedule = \"cosin\"\n",
       {},
       "optimizer.schedule = \"cosin\": must be \"cosine\", \"linear\", \"constant\", \"wsd\" or \"inverse-sqrt\"; "
       "nearest valid is \"cosine\""},
      {"[model]\nfamily = \"gpt-2\"\n",
       {},
       "model.family = \"gpt-2\": must be \"gpt2\", \"llama\", \"bert\" or \"gemma2\"; nearest valid is \"gpt2\""},
      {"[data]\npaths = [\"a\"]\nattention = \"documents\"\n",
       {},
       "data.attention = \"documents\": must be \"causal\" or \"document\"; nearest valid is \"document\""},
  });
}

TEST(BadInput, ManyFaultsInOneFile) {
  expect_complaints({
      {R"(
[modle]
layers = 3
[model]
head = 4
width = 3.5
dropout = 2
[mesh]
pipe = 8
data = 3
[pipeline]
schedule = "1f1bb"
[optimizer]
warmup_steps = 200
)",
       {"train.steps=0", "train.dtype=float8"},
       R"([modle]: is not a known section; nearest valid is [model]
model.head = 4: is not a known key; nearest valid is model.heads
model.width = 3.5: must be an integer; nearest valid is 4
model.dropout = 2: must be at least 0 and less than 1
pipeline.schedule = "1f1bb": must be "naive", "gpipe", "1f1b", "interleaved", "looped-bfs", "zb-h1", "zb-h2", "interleaved-zb", "zb-v", "dualpipev", "dualpipe", "zb-1p", "zb-2p", "v-half", "v-min", "pipedream", "pipedream-2bw" or file:...; nearest valid is "1f1b"
train.steps = 0: must be at least 1; nearest valid is 1
train.dtype = "float8": must be "float32", "float64", "bfloat16" or "float16"; nearest valid is "float32"
train.batch = 8: must be divisible by train.microbatch x mesh.data (4 x 3 = 12); nearest valid is 12)"},
      // A value that could not be read is not judged again, here model.heads against model.width and mesh.tensor.
      {"[model]\nheads = \"six\"\nwidth = 100\n[mesh]\ntensor = 7\n", {}, "model.heads = \"six\": must be an integer"},
      // After a syntax error the overrides are still read.
      {"[model\n", {"train.steps=0", "train.stepz=3"}, "run.toml:2:7: is not TOML: ..."},
  });
  const auto found = problems_of({"[model\n", {"train.steps=0", "train.stepz=3"}, ""});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(braid::text(found[1]), "train.steps = 0: must be at least 1; nearest valid is 1");
  EXPECT_EQ(braid::text(found[2]), "train.stepz = 3: is not a known key; nearest valid is train.steps");
}

TEST(BadInput, AFileThatIsNotThere) {
  try {
    read_run("/nowhere/run.toml", {"train.steps=0"});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "/nowhere/run.toml: cannot open: No such file or directory\n"
                 "train.steps = 0: must be at least 1; nearest valid is 1");
  }
  EXPECT_THROW(read_run(BRAID_SOURCE_DIR, {}), ConfigError);
}

}  // namespace
}  // namespace braid::spec::bad_input_test
