// The list of configuration fields. The parser, the printer, the help and the documentation are made from it. It has
// the rules of single fields; the rules between fields are in cross_rules.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {

using Strings = std::vector<std::string>;
using Reals = std::vector<double>;
using Groups = std::vector<ParameterGroup>;

// A removed key and the key that replaces it. `successor` is empty if none does.
struct FormerKey {
  std::string_view key, successor;
};
inline constexpr FormerKey kFormerKeys[] = {{"train.eval_batches", "train.eval_sequences"},
                                            {"pipeline.validation", ""},
                                            {"memory.offload", "memory.optimizer"},
                                            {"sync.server_optimizer", "optimizer.kind"}};

// A function that returns the field's place in a RunSpec.
template <class T>
using Member = T& (*)(RunSpec&);
// Access to a field of an enum by the names of its values (word.h).
struct Choice {
  std::string_view (*word)(const RunSpec& spec);
  // Returns false and changes nothing if no value has that name.
  bool (*choose)(RunSpec& spec, std::string_view word);
};
// Access to a field in a RunSpec. The alternative determines the field's type.
using Slot = std::variant<Member<bool>, Member<int>, Member<uint64_t>, Member<double>, Member<std::string>,
                          Member<Strings>, Member<Reals>, Member<Groups>, Choice>;

// The following types are the rules that a value can have by itself.
struct Anything {};
struct NotEmpty {};  // text of at least one character
struct IntRange {
  int64_t min, max;  // both allowed
};
enum class Bound { Closed, Open };
struct RealRange {
  double min, max;
  Bound lower = Bound::Closed, upper = Bound::Closed;
};
struct OneOf {
  Strings words;
  std::string prefix = "";  // also allowed: text that begins with this and is longer; empty: none
};
struct WordOrNumbers {  // text: one of the words, or numbers separated by commas
  Strings words;
};
using Rule = std::variant<Anything, NotEmpty, IntRange, RealRange, OneOf, WordOrNumbers>;

struct Field {
  std::string key;      // "model.layers"
  std::string meaning;  // one sentence, with units
  Slot slot;
  Rule rule;
};

struct Section {
  std::string name;     // "model"
  std::string meaning;  // one sentence
};

// Returns all fields in the order of RunSpec's members. The fields of a section are adjacent.
const std::vector<Field>& fields();
// Return the fields of [mesh], of [sync] and of [train].
std::vector<Field> mesh_fields();
std::vector<Field> sync_fields();
std::vector<Field> train_fields();
const std::vector<Section>& sections();
bool is_section(const std::string& name);

// Returns the field of a dotted key, or null.
const Field* find_field(const std::string& key);
std::string section_of(const Field& field);
std::string leaf_of(const Field& field);  // the key without its section

// Returns one of "true or false", "integer", "number", "string", "list of strings", "list of numbers", "string or list
// of numbers" and "list of tables".
std::string type_text(const Field& field);
// Returns a text such as "at least 1", "more than 0 and less than 1" or "\"gpipe\" or \"1f1b\""; empty for Anything.
std::string rule_text(const Rule& rule);
// Returns the field's value in `spec`, as TOML.
std::string value_text(const Field& field, const RunSpec& spec);

// Returns every key with its value, "train.steps = 50", in the order of fields().
Strings settings(const RunSpec& spec);

// Return a value as TOML. Strings are quoted, and their control characters escaped. Doubles read back exactly.
std::string toml_text(int64_t value);
std::string toml_text(uint64_t value);
std::string toml_text(double value);
inline std::string toml_text(const std::string& value) { return quoted_text(value); }
std::string toml_text(const Strings& values);
std::string toml_text(const Reals& values);
std::string toml_text(const Groups& values);

// Returns a problem if the field's value in `spec` breaks the field's own rule.
std::optional<Problem> broken_rule(const Field& field, const RunSpec& spec);
// Returns a problem if `value` breaks the field's own rule. `value` may be too large for the field's type.
std::optional<Problem> broken_rule(const Field& field, int64_t value);

}  // namespace braid::spec
