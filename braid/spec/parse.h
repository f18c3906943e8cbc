// From TOML text and overrides to a RunSpec.
// It reads values; what they mean and what is legal is in fields.h and problems.h.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "braid/spec/problems.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {

// Inputs of validation beside the configuration's text.
struct ParseOptions {
  HostLimits limits = {};
  std::set<std::string> open = {};  // keys whose values are still to be chosen (problems.h)
  // The model of the checkpoint that train.resume names, else of the checkpoint or run that train.init names; adds
  // problems of these keys. Null: such a model is not looked at.
  std::function<ModelSpec(const TrainSpec& train, std::vector<Problem>& problems)> model_of_checkpoint = nullptr;

  // The default of data.tokenizer for a run with train.resume or train.init: the tokenizer of those weights; empty when
  // they have none. Null: data.tokenizer stays "bytes".
  std::function<std::string(const RunSpec& run)> tokenizer_of_weights = nullptr;

  ParseOptions(HostLimits the_limits = {}) : limits(the_limits) {}  // NOLINT: limits alone are options
};

// Reads `toml_text`, then the overrides in order (the last of a key wins), and checks the whole with problems().
//
// The model starts as the one that model.preset or model.config names (preset.h), or where neither is given as that of
// the weights that train.init names; keys given in either place win over its figures. With train.resume too, the model
// is that of the resumed checkpoint, and train.init's files are not needed. Preset and config are empty in what is
// returned, so that it says every figure itself. A text with every key of [model] is read without train.init's files.
//
// An override is "section.key=value" with a TOML value. Where the field is a string a bare word stands for itself
// (train.reduction=reproducible), and in a list of strings too (data.paths=[a.txt, b.txt]), since shells eat quotes.
//
// Throws one ConfigError with every problem, in its place ("origin:12") where it is about a key of the text: syntax
// errors with line and column ("origin:3:7"), unknown sections and keys with the nearest known one, values of a wrong
// type, and all that problems() finds. They come in one order: what is about no key, the lines of the text, the
// overrides, then keys that neither gives, as in fields(). After a syntax error the rules between fields are not
// judged, since most values are missing.
RunSpec parse_run(const std::string& toml_text, const std::string& origin, const std::vector<std::string>& overrides,
                  const ParseOptions& options = {});

// The same for a file. One that cannot be read is a problem like the others.
RunSpec read_run(const std::string& path, const std::vector<std::string>& overrides, const ParseOptions& options = {});

}  // namespace braid::spec
