// Chains of stages, and the choice between scanner and general engine.
#include "braid/tokenize/pretokenizer.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/tokenize/pattern_scanner.h"
#include "braid/tokenize/regex_cursor.h"

namespace braid::tokenize {
namespace {

class WholeText final : public PieceCursor {
 public:
  void reset(std::string_view text) override { size_ = text.size(); }
  size_t next() override { return size_; }

 private:
  size_t size_ = 0;
};

// The pieces of the first, each cut by the second.
class Chain final : public PieceCursor {
 public:
  Chain(std::unique_ptr<PieceCursor> first, std::unique_ptr<PieceCursor> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  void reset(std::string_view text) override {
    text_ = text;
    first_->reset(text);
    begin_ = end_ = at_ = 0;
  }

  size_t next() override {
    if (at_ == end_) {
      begin_ = end_;
      end_ = first_->next();
      second_->reset(text_.substr(begin_, end_ - begin_));
    }
    return at_ = begin_ + second_->next();
  }

 private:
  std::unique_ptr<PieceCursor> first_, second_;
  std::string_view text_;
  size_t begin_ = 0, end_ = 0;  // the first's piece
  size_t at_ = 0;
};

struct NamedPattern {
  const char* name;
  std::string_view regex;
};
constexpr NamedPattern kPatterns[] = {{"gpt2", kGpt2Regex}, {"llama3", kLlama3Regex}, {"qwen2", kQwen2Regex}};

template <class MakeStage>
std::unique_ptr<PieceCursor> chain(const PretokenizerSpec& spec, const MakeStage& make_stage) {
  std::unique_ptr<PieceCursor> all;
  for (const std::string& regex : spec.regexes) {
    auto stage = make_stage(regex);
    all = all ? std::make_unique<Chain>(std::move(all), std::move(stage)) : std::move(stage);
  }
  return all ? std::move(all) : std::make_unique<WholeText>();
}

}  // namespace

std::vector<std::string> pattern_names() {
  std::vector<std::string> names;
  for (const auto& pattern : kPatterns) names.emplace_back(pattern.name);
  return names;
}

std::string pattern_regex(const std::string& name) {
  const auto* const found = std::find_if(std::begin(kPatterns), std::end(kPatterns),
                                         [&](const NamedPattern& pattern) { return pattern.name == name; });
  check(found != std::end(kPatterns), "a pattern of that name");
  return std::string(found->regex);
}

std::unique_ptr<PieceCursor> cut_by(const PretokenizerSpec& spec) {
  return chain(spec, [](const std::string& regex) {
    auto scanner = pattern_scanner(regex);
    return scanner ? std::move(scanner) : regex_cursor(regex);
  });
}

std::unique_ptr<PieceCursor> cut_by_general_engine(const PretokenizerSpec& spec) { return chain(spec, regex_cursor); }

}  // namespace braid::tokenize
