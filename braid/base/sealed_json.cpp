// JSON sealed by a digest. The seal is searched in the text itself, since the bytes before it are digested.
#include "braid/base/sealed_json.h"

#include <nlohmann/json.hpp>

#include "braid/base/errors.h"
#include "braid/base/json_text.h"
#include "braid/base/text.h"

namespace braid {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr DigestKind kKinds[] = {DigestKind::Xxh3, DigestKind::Xxh64};
constexpr std::string_view kSealEnd = "\"\n}\n";
constexpr size_t kDigits = 16;

// Returns the text before the digits of the digest.
std::string seal_begin(int indent, DigestKind kind) {
  return cat(",\n", std::string(static_cast<size_t>(indent), ' '), "\"", text(kind), "\": \"");
}

// Returns the text before its seal. Throws IoError if the seal is missing or belongs to another text.
std::string_view opened(const std::string& path, std::string_view text) {
  const size_t line = text.rfind(",\n"), name = line == text.npos ? line : text.find('"', line);
  for (const DigestKind kind : kKinds) {
    if (name == text.npos) break;
    const std::string begin = seal_begin(static_cast<int>(name - line) - 2, kind);
    const std::string_view seal = text.substr(line);
    const bool whole = seal.size() == begin.size() + kDigits + kSealEnd.size();
    if (!whole || !seal.starts_with(begin) || !seal.ends_with(kSealEnd)) continue;
    const std::string_view body = text.substr(0, line), said = seal.substr(begin.size(), kDigits);
    const std::string found = hex(digest_of(kind, body));
    if (said == found) return body;
    throw IoError(path, static_cast<int64_t>(line),
                  cat("says its ", braid::text(kind), " is ", said, "; it is ", found, ": it was changed"));
  }
  throw IoError(path, static_cast<int64_t>(text.size()),
                cat("must end with its ", braid::text(kKinds[0]), "; it is cut short or another file"));
}

}  // namespace

std::string sealed_json(const OrderedJson& json, int indent) {
  std::string body = json.dump(indent, ' ', false, OrderedJson::error_handler_t::replace);
  body.resize(body.size() - 2);  // removes the last "\n}"
  return cat(body, seal_begin(indent, kKinds[0]), hex(digest_of(kKinds[0], body)), kSealEnd);
}

void read_sealed_json(const std::string& path, const std::string& text,
                      const std::function<void(const OrderedJson&)>& read) {
  const std::string body(opened(path, text));
  OrderedJson json;
  const JsonFault fault = read_json(body + "\n}", json);
  if (fault.line > 0) throw IoError(cat(path, ":", fault.line), -1, fault.why);
  try {
    read(json);
  } catch (const nlohmann::json::exception& error) {
    throw IoError(path, -1, in_words(error));
  }
}

void put_digest(OrderedJson& to, const NamedDigest& digest) { to[text(digest.kind)] = hex(digest.value); }

NamedDigest digest_in(const OrderedJson& from, const std::string& path) {
  for (const DigestKind kind : kKinds) {
    if (from.contains(text(kind))) return {hex_in(from, text(kind), path), kind};
  }
  throw IoError(path, -1, cat("must say the ", text(kKinds[0]), " of each file"));
}

uint64_t hex_in(const OrderedJson& from, const std::string& key, const std::string& path) {
  const auto digits = from.at(key).get<std::string>();
  const bool good = digits.size() == kDigits && digits.find_first_not_of("0123456789abcdef") == digits.npos;
  if (!good) throw IoError(path, -1, cat(key, " ", digits, " must be sixteen digits"));
  return std::stoull(digits, nullptr, 16);
}

}  // namespace braid
