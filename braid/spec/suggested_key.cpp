// The search for the key that a wrong name means, from the surest match to the least sure: exact names, then spelling.
#include "braid/spec/suggested_key.h"

#include <algorithm>
#include <optional>
#include <span>

#include "braid/base/text.h"
#include "braid/spec/assign.h"
#include "braid/spec/fields.h"
#include "braid/spec/peer_names.h"

namespace braid::spec {
namespace {

std::string leaf_of_key(const std::string& key) { return key.substr(key.rfind('.') + 1); }

std::string section_of_key(const std::string& key) {
  const auto dot = key.find('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

std::string key_of_peer(const std::string& name) {
  for (const auto table : {peer_names(), related_peer_names()}) {
    const auto found = std::ranges::find(table, name, &PeerName::name);
    if (found != table.end()) return std::string(found->key);
  }
  return "";
}

std::string key_with_leaf(const std::string& name) {
  const auto found = std::ranges::find_if(fields(), [&](const Field& field) { return leaf_of(field) == name; });
  return found == fields().end() ? "" : found->key;
}

bool is_related_alone(const std::string& name) {
  const auto is = [&](const std::string& each) {
    return std::ranges::find(related_peer_names(), each, &PeerName::name) != related_peer_names().end();
  };
  return is(name) || is(leaf_of_key(name));
}

// Returns a key with a similar name in the same section, or else in any section.
std::string nearest_spelling(const std::string& key) {
  Strings own, all, leaves;
  for (const auto& field : fields()) {
    if (section_of(field) == section_of_key(key)) own.push_back(leaf_of(field));
    all.push_back(field.key);
    leaves.push_back(leaf_of(field));
  }
  const std::string sibling = nearest(leaf_of_key(key), own);
  if (!sibling.empty()) return cat(section_of_key(key), ".", sibling);
  // With a known section, whole keys would be similar because of the section alone.
  if (!section_of_key(key).empty() && !is_section(section_of_key(key))) return nearest(key, all);
  const auto found = std::find(leaves.begin(), leaves.end(), nearest(leaf_of_key(key), leaves));
  return found == leaves.end() ? "" : all[found - leaves.begin()];
}

bool fits_field(const Field& field, const std::string& text) {
  const auto value = override_value(field, text);
  RunSpec trial;
  return value && !assign(field, *value, trial) && !broken_rule(field, trial);
}

std::string default_text(const Field& field) {
  return std::holds_alternative<Member<bool>>(field.slot) ? "true" : value_text(field, RunSpec());
}

}  // namespace

std::string known_as(const std::string& name) {
  const std::string plain = as_peers_write(name);
  if (find_field(plain)) return plain;
  if (auto whole = key_of_peer(plain); !whole.empty()) return whole;
  if (auto moved = key_with_leaf(leaf_of_key(plain)); !moved.empty()) return moved;
  return key_of_peer(leaf_of_key(plain));
}

std::string suggested_key(const std::string& name) {
  const auto former = std::ranges::find(kFormerKeys, name, &FormerKey::key);
  if (former != std::end(kFormerKeys)) return std::string(former->successor);
  const std::string known = known_as(name);
  return known.empty() ? nearest_spelling(name) : known;
}

std::string suggested_override(const std::string& name, const std::string& value) {
  const std::string key = known_as(name);
  const Field* const field = find_field(key);
  if (!field || is_related_alone(as_peers_write(name))) return key;
  const std::string word(word_of_peer(key, value));
  const std::string& text = word.empty() ? value : word;
  return cat(key, "=", !text.empty() && fits_field(*field, text) ? text : default_text(*field));
}

}  // namespace braid::spec
