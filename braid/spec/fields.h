// The one list of configuration fields: it makes the parser, the printer, the help and the documentation.
// It knows one field at a time; what must hold between fields is in problems.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "braid/base/errors.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {

using Strings = std::vector<std::string>;
using Reals = std::vector<double>;
using Groups = std::vector<ParameterGroup>;

// A key that there is none of any more, and the one that says what it said; empty where nothing does.
struct FormerKey {
  std::string_view key, successor;
};
inline constexpr FormerKey kFormerKeys[] = {{"train.eval_batches", "train.eval_sequences"},
                                            {"pipeline.validation", ""},
                                            {"sync.server_optimizer", "optimizer.kind"}};

// The place of a field in a RunSpec; the alternative is its type.
template <class T>
using Member = T& (*)(RunSpec&);
// A field of an enum, by the names of its values (word.h).
struct Choice {
  std::string_view (*word)(const RunSpec& spec);
  bool (*choose)(RunSpec& spec, std::string_view word);  // false, and nothing changes: no value has that name
};
using Slot = std::variant<Member<bool>, Member<int>, Member<uint64_t>, Member<double>, Member<std::string>,
                          Member<Strings>, Member<Reals>, Member<Groups>, Choice>;

// A value's own rule.
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
  std::string prefix = "";  // also allowed: this and something after it
};
struct WordOrNumbers {  // text: one of the words, or numbers with commas between them
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

// In the order of the structs; fields of a section are neighbours.
const std::vector<Field>& fields();
// The parts of them that are about replicas and about the run.
std::vector<Field> sync_fields();
std::vector<Field> train_fields();
const std::vector<Section>& sections();
bool is_section(const std::string& name);

// The field of a dotted key, or null.
const Field* find_field(const std::string& key);
std::string section_of(const Field& field);
std::string leaf_of(const Field& field);  // the key without its section

// "true or false", "integer", "number", "string", "list of strings", "list of numbers", "string or list of numbers",
// "list of tables".
std::string type_text(const Field& field);
// "at least 1", "more than 0 and less than 1", "\"gpipe\" or \"1f1b\""; empty for Anything.
std::string rule_text(const Rule& rule);
// The field's value in `spec`, as TOML.
std::string value_text(const Field& field, const RunSpec& spec);

// Every key with its value, "train.steps = 50", in the order of fields().
Strings settings(const RunSpec& spec);

// A value as TOML. Strings come in quotes, with control characters escaped; doubles read back exactly.
std::string toml_text(int64_t value);
std::string toml_text(uint64_t value);
std::string toml_text(double value);
std::string toml_text(const std::string& value);
std::string toml_text(const Strings& values);
std::string toml_text(const Reals& values);
std::string toml_text(const Groups& values);

// The field's rule broken by its value in `spec`.
std::optional<Problem> broken_rule(const Field& field, const RunSpec& spec);
// The rule broken by an integer that may not even fit the field.
std::optional<Problem> broken_rule(const Field& field, int64_t value);

}  // namespace braid::spec
