// A run's configuration, and that what is accepted can be written out and means the same.
#include "braid/base/errors.h"
#include "braid/spec/describe.h"
#include "braid/spec/fields.h"
#include "braid/spec/parse.h"
#include "tests/fuzz/target.h"

namespace braid::fuzz {

using namespace spec;

namespace {

void run_configuration(const std::string& input) {
  const RunSpec spec = parse_run(input, "run.toml", {});
  check(parse_run(to_toml(spec), "run.toml", {}) == spec, "a configuration that is written out means the same");
}

std::vector<std::string> configuration_seeds() {
  RunSpec spec;
  spec.data.paths = {"corpus.txt", "more/"};
  spec.train.sample_prompt = "def \"f\"(x):\n";
  return {"", "[model]\nlayers = 2\n[data]\npaths = [\"a\"]\n", to_toml(spec)};
}

// Every key, so that changes lead from one valid configuration to another.
std::vector<std::string> configuration_words() {
  std::vector<std::string> words{"\n", "= ",     "[",  "]",   "\"",  "'''", "\"\"\"", "{",    "}",
                                 "#",  ".",      "0x", "1e9", "inf", "nan", "-",      "true", "1979-05-27T07:32:00Z",
                                 "[[", "\\u0000"};
  for (const Field& field : fields()) {
    words.push_back("\n[" + field.key.substr(0, field.key.find('.')) + "]\n");
    words.push_back("\n" + field.key.substr(field.key.find('.') + 1) + " = ");
  }
  return words;
}

}  // namespace

Target configuration_target() {
  return {"configuration", run_configuration, configuration_seeds, configuration_words()};
}

}  // namespace braid::fuzz
