// braid model: prints the ops of a run's model as one rank runs them.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/model_drawing.h"
#include "braid/cli/plan_request.h"
#include "braid/layout/parameters.h"
#include "braid/plan/block_work.h"
#include "braid/spec/parse.h"

namespace braid::cli {
namespace {

using Json = nlohmann::ordered_json;

RunSpec run_of(const std::string& file, const std::vector<std::string>& overrides) {
  if (file.empty()) throw ConfigError({{"FILE", "", "must be given: the run as TOML", ""}});
  RunSpec run = spec::read_run(file, overrides, spec::ParseOptions(spec::any_hosts(spec::Purpose::Plan)));
  take_vocab_of_bytes(run);
  if (run.model.vocab == 0) throw ConfigError({{"model.vocab", "0", "must be given: no data are read", ""}});
  return run;
}

double kept_bytes(const layout::ListedOp& op, DType type) {
  return plan::element_bytes(type) * op.kept_elements + plan::element_bytes(DType::Float32) * op.kept_floats;
}

double bytes_of(const layout::ListedCollective& call, DType type) {
  const double element = plan::element_bytes(type), of_float = plan::element_bytes(DType::Float32);
  return call.elements * (call.in_float ? std::max(element, of_float) : element);
}

std::string padded(const std::string& text, size_t width) {
  return text + std::string(text.size() < width ? width - text.size() : 1, ' ');
}

std::string text_of(const RunSpec& run, const layout::Listing& listing) {
  std::string text;
  const std::string* block = nullptr;
  for (const layout::ListedOp& op : listing.ops) {
    if (!block || *block != op.block) text += cat(op.block, op.count > 1 ? cat(" of ", op.count) : "", "\n");
    block = &op.block;
    text += cat("  ", padded(op.kind, 12), padded(op.rule, 46), padded(shape_text(op), 20), parameters_text(op, ", "),
                "\n");
  }
  for (const layout::ListedCollective& call : listing.collectives) {
    const double bytes = bytes_of(call, run.train.dtype);
    text += cat(word(call.kind), " over ", mesh::text(call.axis), " in ", word(call.pass), " of ", call.block, " ",
                call.param, ": ", call.times > 1 ? cat(call.times, " x ") : "", human_bytes(bytes),
                call.axis == mesh::Axis::Expert ? " (not executed yet)" : "", "\n");
  }
  return text;
}

Json json_of(const RunSpec& run, const layout::Listing& listing) {
  Json ops = Json::array(), collectives = Json::array();
  double flops = 0, kept = 0;
  for (const layout::ListedOp& op : listing.ops) {
    const double bytes = kept_bytes(op, run.train.dtype);
    Json split = Json::object();
    if (!op.split.empty()) split["tensor"] = op.split;
    ops.push_back({{"name", op.name},
                   {"count", op.count},
                   {"kind", op.kind},
                   {"rule", op.rule},
                   {"shape", op.shape},
                   {"parameters", op.parameters},
                   {"frozen", op.frozen},
                   {"layout", split},
                   {"flops", op.flops},
                   {"kept_bytes", bytes}});
    flops += op.count * op.flops;
    kept += op.count * bytes;
  }
  for (const layout::ListedCollective& call : listing.collectives) {
    collectives.push_back({{"op", listing.ops[call.op].name},
                           {"axis", mesh::text(call.axis)},
                           {"kind", word(call.kind)},
                           {"pass", word(call.pass)},
                           {"times", call.times},
                           {"bytes", bytes_of(call, run.train.dtype)}});
  }
  return {{"ops", ops},
          {"collectives", collectives},
          {"totals", {{"parameters", layout::count_params(run.model)}, {"flops", flops}, {"kept_bytes", kept}}}};
}

}  // namespace

int model_command(const Words& words) {
  CLI::App app(
      "Prints the ops of a run's model: shapes on one rank, parameters, collectives. Words after the file "
      "override its keys.",
      "braid model");
  std::string file;
  std::vector<std::string> overrides;
  bool json = false, dot = false;
  add_run_file(app, file);
  add_overrides(app, overrides);
  app.add_flag("--json", json,
               "as one JSON object: the ops of one layer, with operations of forward, and bytes kept without "
               "recomputation, logits and masks");
  app.add_flag("--dot", dot, "as a graph in the language of Graphviz")->excludes("--json");
  if (const auto code = parse_words(app, words)) return *code;
  const RunSpec run = run_of(file, overrides);
  const layout::Listing listing = listing_of(run);
  std::cout << (json ? json_of(run, listing).dump() + "\n" : dot ? model_dot(listing) : text_of(run, listing));
  return 0;
}

}  // namespace braid::cli
