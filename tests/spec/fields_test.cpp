// The field list against the structs, the printed configuration and the documentation.
#include "braid/spec/fields.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "braid/spec/describe.h"
#include "braid/spec/parse.h"

namespace braid::spec::fields_test {
namespace {

int num_fields(const std::string& section) {
  int count = 0;
  for (const auto& field : fields()) count += section_of(field) == section;
  return count;
}

// Each binding names every member of its struct: a member without a field does not compile here, or fails to count.
TEST(Fields, CoverEveryMember) {
  const RunSpec run;
  [[maybe_unused]] const auto& [preset, config, family, layers, heads, kv_heads, width, head_width, qkv_bias, qk_norm,
                                window, attention_cap, logit_cap, query_scalar, ffn, experts, per_token, context, vocab,
                                vocab_multiple, vocab_parts, output_weights, dropout, init_std, norm_eps, rope_base,
                                rope_scaling, rope_factor, rope_low, rope_high, rope_context, fast_turns, slow_turns,
                                magnitude] = run.model;
  EXPECT_EQ(num_fields("model"), 33);
  [[maybe_unused]] const auto& [paths, include, tokenizer, weights, attention, sequences, mask_fraction,
                                validation_fraction] = run.data;
  EXPECT_EQ(num_fields("data"), 8);
  [[maybe_unused]] const auto& [pipe, data, context_ranks, expert, tensor, context_form, ulysses_ranks,
                                sequence_parallel, tensor_overlap, ranks_per_node, batch_shares] = run.mesh;
  EXPECT_EQ(num_fields("mesh"), 11);
  [[maybe_unused]] const auto& [pipeline_schedule, chunks, group, weights_seen, partition, speeds] = run.pipeline;
  EXPECT_EQ(num_fields("pipeline"), 6);
  [[maybe_unused]] const auto& [replication, bucket_mb, first_bucket_mb, overlap, tune, compression, fraction, rank,
                                start, zero, zero_group, zero_gather, period, period_warmup, outer_lr, outer_momentum,
                                servers, servers_on, consistency, staleness, push_every, pull_every] = run.sync;
  EXPECT_EQ(num_fields("sync"), 22);
  [[maybe_unused]] const auto& [recompute, limit_gb, optimizer_tier, gradients_tier, parameters_tier, activations_tier,
                                activation_blocks, tier_paths, chunk_mb] = run.memory;
  EXPECT_EQ(num_fields("memory"), 9);
  [[maybe_unused]] const auto& [kind, lr, schedule, warmup, decay_steps, cooldown, final_lr, momentum, beta1, beta2,
                                eps, decay, clip, groups, state_dtype] = run.optimizer;
  EXPECT_EQ(num_fields("optimizer"), 15);
  [[maybe_unused]] const auto& [steps, batch, microbatch, seed, objective, reduction, tensor_parts, dtype, loss_scale,
                                device, cuda_graph, peak_flops, threads, eval_every, eval_sequences, log_every,
                                save_every, save_minutes, out, overwrite, resume, init, on_spike, spike_threshold,
                                check_replicas, check, allow_change, sample_prompt, sample_tokens] = run.train;
  EXPECT_EQ(num_fields("train"), 29);
  [[maybe_unused]] const auto& [keep, keep_best, async, host_gib] = run.checkpoint;
  EXPECT_EQ(num_fields("checkpoint"), 4);
  [[maybe_unused]] const auto& [ranks, engine, max_restarts, progress_seconds, placement, heartbeat_seconds] = run.run;
  EXPECT_EQ(num_fields("run"), 6);
  EXPECT_EQ(fields().size(), 33u + 8 + 11 + 6 + 22 + 9 + 15 + 29 + 4 + 6);
  [[maybe_unused]] const auto& [a, b, c, d, e, f, g, h, i, j] = run;
  EXPECT_EQ(sections().size(), 10u);
}

TEST(Fields, AreDistinctAndDescribed) {
  std::set<std::string> keys;
  for (const auto& field : fields()) {
    EXPECT_TRUE(keys.insert(field.key).second) << field.key;
    EXPECT_EQ(find_field(field.key), &field);
    EXPECT_EQ(section_of(field) + "." + leaf_of(field), field.key);
    EXPECT_TRUE(field.meaning.ends_with(".")) << field.key;
    EXPECT_EQ(field.meaning.find('|'), std::string::npos) << "a bar would break the table of " << field.key;
  }
}

TEST(Fields, DefaultsKeepTheirOwnRules) {
  for (const auto& field : fields()) EXPECT_FALSE(broken_rule(field, RunSpec())) << field.key;
}

template <class T>
void change(Member<T> member, RunSpec& spec, const Rule&) {
  T& value = member(spec);
  if constexpr (std::is_same_v<T, std::string>) {
    value += "x";
  } else if constexpr (std::is_same_v<T, bool>) {
    value = !value;
  } else if constexpr (std::is_arithmetic_v<T>) {
    value += 1;
  } else {
    value.emplace_back();
  }
}

void change(Choice choice, RunSpec& spec, const Rule& rule) {
  const std::string was(choice.word(spec));
  const Strings& words = std::get<OneOf>(rule).words;
  EXPECT_TRUE(choice.choose(spec, was == words.front() ? words.back() : words.front())) << was;
  EXPECT_FALSE(choice.choose(spec, "x")) << was;
}

// Two fields on one member, or a key that names another member, would show here.
TEST(Fields, EachChangesItsOwnMemberOnly) {
  std::set<std::string> printed;
  for (const auto& field : fields()) {
    RunSpec changed;
    std::visit([&](auto slot) { change(slot, changed, field.rule); }, field.slot);
    for (const auto& other : fields()) {
      EXPECT_EQ(value_text(other, changed) != value_text(other, RunSpec()), other.key == field.key) << other.key;
    }
    EXPECT_TRUE(printed.insert(to_toml(changed)).second) << field.key;
  }
}

RunSpec peculiar_run() {
  RunSpec spec;
  spec.model.layers = 7;
  spec.model.dropout = 0.1;
  spec.model.init_std = 1.0 / 3;
  spec.data.paths = {"a \"quoted\" path", "back\\slash", "tab\tnewline\n", "\x01\x7f", "gr\xc3\xbc\xc3\x9f"};
  spec.data.include = {"*.py", "#"};
  spec.data.validation_fraction = 5e-324;
  spec.mesh.pipe = 2;
  spec.mesh.data = 2;
  spec.pipeline.partition = "3.5,3.5";
  spec.pipeline.speeds = {1, 0.1};
  spec.memory.recompute = "every:2,none";
  spec.optimizer.lr = 1e22;
  spec.optimizer.eps = 1.7976931348623157e308;
  spec.optimizer.groups = {{.match = "*.bias", .lr_scale = 0.1},
                           {.match = "[\"w]pe.*", .weight_decay = 1e-300},
                           {.match = "wte.*", .frozen = true}};
  spec.train.seed = 9223372036854775807u;
  spec.train.reduction = Reduction::Reproducible;
  spec.train.overwrite = true;
  spec.train.sample_prompt = "def f(x):\n    return";
  return spec;
}

TEST(Printed, ReadsBackToAnEqualRun) {
  RunSpec plain;
  plain.data.paths = {"corpus.txt"};
  for (const auto& spec : {plain, peculiar_run()}) {
    const std::string printed = to_toml(spec);
    const RunSpec read = parse_run(printed, "printed", {});
    EXPECT_EQ(read, with_parts(spec)) << printed;
    EXPECT_EQ(to_toml(read), printed);
  }
}

TEST(Printed, ShowsSectionsInOrder) {
  RunSpec spec;
  spec.mesh.data = 4;
  spec.pipeline.partition = "6";
  const std::string printed = to_toml(spec);
  EXPECT_NE(printed.find("[mesh]\n"
                         "pipe = 1\n"
                         "data = 4\n"
                         "context = 1\n"
                         "context_parallel = \"ring\"\n"
                         "ulysses_ranks = 0\n"
                         "expert = 1\n"
                         "tensor = 1\n"
                         "sequence_parallel = false\n"
                         "tensor_overlap = \"auto\"\n"
                         "ranks_per_node = 0\n"
                         "batch_shares = \"equal\"\n"
                         "\n"
                         "[pipeline]\n"
                         "schedule = \"1f1b\"\n"
                         "chunks = 0\n"
                         "group = 0\n"
                         "weights = \"own\"\n"
                         "partition = \"6\"\n"
                         "speeds = []\n"),
            std::string::npos)
      << printed;
}

TEST(Printed, HelpNamesEveryField) {
  for (const auto& field : fields()) {
    EXPECT_NE(config_text().find("\n  " + leaf_of(field) + " = "), std::string::npos) << field.key;
    EXPECT_NE(config_text().find(field.meaning), std::string::npos) << field.key;
  }
}

TEST(Documentation, IsWhatTheCommandPrints) {
  std::ifstream file(BRAID_SOURCE_DIR "/docs/configuration.md");
  std::ostringstream committed;
  committed << file.rdbuf();
  EXPECT_EQ(committed.str(), config_markdown()) << "make it anew: braid config --markdown > docs/configuration.md";
}

}  // namespace
}  // namespace braid::spec::fields_test
