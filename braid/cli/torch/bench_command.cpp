// braid bench scaling: times steps of a configuration with different numbers of data ranks on this machine.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "braid/base/host.h"
#include "braid/base/output_file.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/cli/option_reader.h"
#include "braid/cli/option_rules.h"
#include "braid/report/scaling.h"
#include "braid/spec/parse.h"
#include "braid/train/measure_scaling.h"
#include "braid/train/run.h"

namespace braid::cli {
namespace {

std::vector<report::ScalingPoint> points(const std::vector<train::MeasuredScaling::Point>& measured, MeshSpec mesh) {
  std::vector<report::ScalingPoint> all;
  for (const auto& [data, seconds, tokens] : measured) {
    mesh.data = data;
    all.push_back({static_cast<int>(num_ranks(mesh)), seconds, tokens});
  }
  return all;
}

// Returns "1,2,4", with the powers of two up to `most`.
std::string powers_of_two(int most) {
  std::string counts = "1";
  for (int ranks = 2; ranks <= most; ranks *= 2) counts += "," + std::to_string(ranks);
  return counts;
}

train::ScalingRequest request(const std::string& ranks, const std::string& steps) {
  OptionReader reader;
  train::ScalingRequest wanted;
  const int most = train::host_limits().max_ranks;
  for (const std::string& word : CLI::detail::split(ranks, ',')) {
    wanted.ranks.push_back(reader.natural("--ranks", word, 1));
    if (wanted.ranks.back() > most)
      reader.add({"--ranks", word, cat("must be at most ", most, ", which this host carries"), cat(most)});
  }
  wanted.steps = reader.natural("--steps", steps, 1);
  if (!std::is_sorted(wanted.ranks.begin(), wanted.ranks.end())) {
    reader.add({"--ranks", ranks, "must be ascending", ""});
  }
  reader.throw_problems();
  return wanted;
}

}  // namespace

int scaling_command(const Words& words) {
  CLI::App app(
      "Times steps at several counts of data ranks, with the batch of a step (strong scaling) and with each rank's "
      "share "
      "(weak) held fixed. Words after the file override its keys.",
      "braid bench scaling");
  std::string path, ranks = powers_of_two(num_cores()), steps = "6", svg;
  std::vector<std::string> overrides;
  add_run_file(app, path)->required();
  add_overrides(app, overrides);
  app.add_option("--ranks", ranks, "counts of data ranks, ascending, with commas between them")->capture_default_str();
  app.add_option("--steps", steps, "steps timed at each, after one that is not")->capture_default_str();
  app.add_option("--svg", svg, "file to draw the speed-up into")->check(output_name());
  if (const auto code = parse_words(app, words)) return *code;

  const train::ScalingRequest wanted = request(ranks, steps);
  RunSpec spec = spec::read_run(path, overrides, train::host_limits());
  spec.train.init.clear();  // the time does not depend on the weights
  const train::MeasuredScaling measured = train::measure_scaling(spec, wanted);
  const report::Scaling scaling{points(measured.strong, spec.mesh), points(measured.weak, spec.mesh)};
  std::cout << report::scaling_table(scaling);
  if (!svg.empty()) write_named_file(svg, report::scaling_svg(scaling));
  return 0;
}

}  // namespace braid::cli
