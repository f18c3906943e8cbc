// Reads a RunSpec from TOML text and overrides. The fields are in fields.h, the checks in problems.h.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "braid/spec/problems.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {

// Inputs of parsing and validation other than the text and the overrides.
struct ParseOptions {
  HostLimits limits = {};
  std::set<std::string> open = {};  // keys whose values are still to be chosen (problems.h)
  // Returns the model of the checkpoint that train.resume names, else of the checkpoint or run that train.init names.
  // Adds problems of these keys. If null, such a model is not read, and the defaults of ModelSpec apply.
  std::function<ModelSpec(const TrainSpec& train, std::vector<Problem>& problems)> model_of_checkpoint = nullptr;

  // Returns the default of data.tokenizer for a run with train.resume or train.init: the tokenizer of those weights. If
  // it is null or returns "", the default stays "bytes".
  std::function<std::string(const RunSpec& run)> tokenizer_of_weights = nullptr;

  ParseOptions(HostLimits the_limits = {}) : limits(the_limits) {}  // NOLINT: limits alone are options
};

// Reads `toml_text`, then the overrides in order (the last of a key wins), and checks the result with problems().
//
// The defaults of [model] come from the first of these:
//  * the model that model.preset or model.config names (preset.h);
//  * if train.init and train.resume are given: the model of the resumed checkpoint, without reading train.init's files;
//  * if train.init is given: the model of those weights;
//  * ModelSpec.
// The model of weights is not read if every key of [model] is given. Keys that are given win over the defaults. In the
// result preset and config are empty, since it holds every size itself.
//
// An override is "section.key=value" with a TOML value. Since shells remove quotes, strings may be bare words
// (train.reduction=reproducible), also in a list (data.paths=[a.txt, b.txt]).
//
// Throws one ConfigError with every problem:
//  * syntax errors with line and column ("origin:3:7");
//  * unknown sections and keys, with the nearest known one;
//  * values of a wrong type;
//  * the problems that problems() finds. After a syntax error most values are missing, so rules between fields are not
//    checked.
// A problem of a key in the text has its line as place ("origin:12"). The order of problems is: those of no key, by
// line of the text, by override, then keys that are not given, as in fields().
RunSpec parse_run(const std::string& toml_text, const std::string& origin, const std::vector<std::string>& overrides,
                  const ParseOptions& options = {});

// Does the same for a file. If the file cannot be read, that is one of the problems.
RunSpec read_run(const std::string& path, const std::vector<std::string>& overrides, const ParseOptions& options = {});

}  // namespace braid::spec
