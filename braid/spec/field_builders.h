// Helpers for the lists of fields: bounds, and a builder for each section of a RunSpec.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "braid/base/text.h"
#include "braid/base/word.h"
#include "braid/model/families.h"
#include "braid/spec/fields.h"

namespace braid::spec::field_builders {

inline constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
inline constexpr int64_t kMaxToml = std::numeric_limits<int64_t>::max();  // TOML has no larger integer
inline constexpr int64_t kMaxAxis = 4096;                                 // the product of five axes fits in 64 bits
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <auto Section, auto Value>
auto& at(RunSpec& spec) {
  return spec.*Section.*Value;
}

// Builds the Choice of an enum whose values have names (word.h).
template <auto Section, auto Value>
Choice choice() {
  using Enum = std::remove_cvref_t<decltype(at<Section, Value>(std::declval<RunSpec&>()))>;
  return {[](const RunSpec& spec) { return word(spec.*Section.*Value); },
          [](RunSpec& spec, std::string_view name) {
            const auto value = value_of<Enum>(name);
            if (value) at<Section, Value>(spec) = *value;
            return value.has_value();
          }};
}

// Builds the field of a section's member. REQUIRES: the section in `key` is the name of the member `Section`.
template <auto Section, auto Value>
Field field(std::string key, Rule rule, std::string meaning) {
  using Type = std::remove_cvref_t<decltype(at<Section, Value>(std::declval<RunSpec&>()))>;
  if constexpr (std::is_enum_v<Type>) {
    return {std::move(key), std::move(meaning), choice<Section, Value>(), std::move(rule)};
  } else {
    return {std::move(key), std::move(meaning), &at<Section, Value>, std::move(rule)};
  }
}

template <class Enum>
OneOf one_of() {
  return {Strings(kWords<Enum>.begin(), kWords<Enum>.end())};
}

inline IntRange at_least(int64_t min) { return {min, kMaxInt}; }
inline RealRange more_than(double min) { return {min, kInfinity, Bound::Open, Bound::Open}; }
inline RealRange from(double min) { return {min, kInfinity, Bound::Closed, Bound::Open}; }

template <auto Value>
inline constexpr auto model = &field<&RunSpec::model, Value>;
template <auto Value>
inline constexpr auto data = &field<&RunSpec::data, Value>;
template <auto Value>
inline constexpr auto mesh = &field<&RunSpec::mesh, Value>;
template <auto Value>
inline constexpr auto pipeline = &field<&RunSpec::pipeline, Value>;
template <auto Value>
inline constexpr auto sync = &field<&RunSpec::sync, Value>;
template <auto Value>
inline constexpr auto memory = &field<&RunSpec::memory, Value>;
template <auto Value>
inline constexpr auto optimizer = &field<&RunSpec::optimizer, Value>;
template <auto Value>
inline constexpr auto train = &field<&RunSpec::train, Value>;
template <auto Value>
inline constexpr auto checkpoint = &field<&RunSpec::checkpoint, Value>;
template <auto Value>
inline constexpr auto run = &field<&RunSpec::run, Value>;

// Returns "Only of model.family ..." with the families that a key is for.
template <class Trait>
std::string only_of(Trait model::FamilyTraits::*trait, std::initializer_list<Trait> values) {
  std::vector<std::string> names;
  for (const model::Family& family : model::families()) {
    if (std::ranges::count(values, family.traits.*trait) > 0) names.push_back(quoted_text(family.name));
  }
  return cat(" Only of model.family ", joined(names, " and "), ".");
}

}  // namespace braid::spec::field_builders
