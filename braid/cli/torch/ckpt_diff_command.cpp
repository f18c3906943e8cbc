// braid ckpt diff: prints the differences between two checkpoints.
#include <CLI/CLI.hpp>
#include <iostream>

#include "braid/base/text.h"
#include "braid/ckpt/compare.h"
#include "braid/cli/arguments.h"
#include "braid/cli/torch/named_checkpoint.h"
#include "braid/spec/fields.h"
#include "braid/train/resume.h"

namespace braid::cli {
namespace {

constexpr size_t kMostOfAValue = 2'000;  // bytes that are shown

using Lines = std::vector<std::string>;

void add_line(Lines& lines, const std::string& what, const std::string& first, const std::string& second) {
  if (first != second) lines.push_back(cat(what, ": ", first, " and ", second));
}

// Returns a line for each difference in steps, next samples and counters, and in the keys of the configuration if both
// checkpoints have one.
Lines different_facts(const ckpt::CheckpointReader& first, const ckpt::CheckpointReader& second) {
  Lines lines;
  const ckpt::CheckpointInfo &a = first.manifest().info, &b = second.manifest().info;
  add_line(lines, "step", cat(a.step), cat(b.step));
  add_line(lines, "next sample", cat(a.next_sample), cat(b.next_sample));
  for (const auto& [name, value] : a.counters) {
    add_line(lines, name, exact(value), b.counters.contains(name) ? exact(b.counters.at(name)) : "none");
  }
  for (const auto& [name, value] : b.counters) {
    if (!a.counters.contains(name)) add_line(lines, name, "none", exact(value));
  }
  if (a.config_toml == b.config_toml) return lines;
  if (a.config_toml.empty() || b.config_toml.empty()) {
    add_line(lines, "configuration", a.config_toml.empty() ? "none" : "one", b.config_toml.empty() ? "none" : "one");
    return lines;
  }
  const RunSpec ours = train::saved_spec(a, first.folder()), theirs = train::saved_spec(b, second.folder());
  for (const spec::Field& field : spec::fields())
    add_line(lines, field.key, spec::value_text(field, ours), spec::value_text(field, theirs));
  return lines;
}

std::string text_of(const ckpt::TensorDifference& found) {
  switch (found.kind) {
    case ckpt::TensorDifference::Kind::OnlyInFirst:
      return "only in the first";
    case ckpt::TensorDifference::Kind::OnlyInSecond:
      return "only in the second";
    case ckpt::TensorDifference::Kind::Shape:
      return cat(found.first, " and ", found.second);
    default:
      return cat(counted(found.elements, "element"), " differ, by at most ", exact(found.largest));
  }
}

}  // namespace

int ckpt_diff_command(const Words& words) {
  CLI::App app(
      "Compares two checkpoints: steps, configuration, tensors. Exit code 0 when they are equal bit for bit, 1 when "
      "not.",
      "braid ckpt diff");
  std::string a, b;
  app.add_option("A", a, kCheckpointMeaning)->required();
  app.add_option("B", b, "the other")->required();
  if (const auto code = parse_words(app, words)) return *code;

  ckpt::CheckpointReader first(named_checkpoint({"A", a, a}, tell_passed_over));
  ckpt::CheckpointReader second(named_checkpoint({"B", b, b}, tell_passed_over));
  for (ckpt::CheckpointReader* reader : {&first, &second}) reader->verify();
  const Lines facts = different_facts(first, second);
  const auto tensors = ckpt::compared(first, second);
  for (const std::string& line : facts) std::cout << printable(line, kMostOfAValue) << "\n";
  for (const ckpt::TensorDifference& found : tensors) {
    std::cout << "tensor " << printable(found.name, kMostOfAValue) << ": " << text_of(found) << "\n";
  }
  const size_t count = first.manifest().tensors.size();
  if (tensors.empty()) std::cout << "all " << counted(count, "tensor") << " are equal bit for bit\n";
  return facts.empty() && tensors.empty() ? 0 : 1;
}

}  // namespace braid::cli
