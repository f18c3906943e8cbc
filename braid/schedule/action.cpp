// The conversion of an action to text and back.
#include "braid/schedule/action.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {
namespace {

struct OpName {
  Op op;
  std::string_view name, words;
};

constexpr OpName kOpNames[] = {
    {Op::Forward, "F", "forward"},
    {Op::FullBackward, "B", "backward"},
    {Op::InputGrad, "I", "input gradient"},
    {Op::WeightGrad, "W", "weight gradient"},
    {Op::SendForward, "SEND_F", "send activations"},
    {Op::RecvForward, "RECV_F", "recv activations"},
    {Op::SendBackward, "SEND_B", "send gradients"},
    {Op::RecvBackward, "RECV_B", "recv gradients"},
    {Op::ReduceGrad, "REDUCE_GRAD", "reduce gradients"},
    {Op::Unshard, "UNSHARD", "gather parameters"},
    {Op::Reshard, "RESHARD", "free parameters"},
    {Op::Recompute, "RECOMPUTE", "recompute"},
    {Op::Update, "UPDATE", "update"},
};

const OpName& known(Op op) {
  const OpName& known = kOpNames[static_cast<size_t>(op)];
  check(known.op == op, "the names of ops are in their order");
  return known;
}

constexpr std::string_view kDigits = "0123456789";

[[noreturn]] void refuse(std::string_view word, std::string rule, std::string nearest_word = "") {
  throw ConfigError({{"action", std::string(word), std::move(rule), std::move(nearest_word)}});
}

int number(std::string_view digits, int most, std::string_view word) {
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value >= most) {
    refuse(word, "has a number that does not fit");
  }
  return value;
}

std::string nearest_op(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& known : kOpNames) names.emplace_back(known.name);
  return nearest(name, names);
}

}  // namespace

bool of_whole_stage(Op op) { return op == Op::ReduceGrad || op == Op::Unshard || op == Op::Reshard; }

std::string text(Op op) { return std::string(known(op).name); }
std::string_view words_of(Op op) { return known(op).words; }

void append_text(std::string& words, const Action& action) {
  char word[40];
  char* end = std::to_chars(word, std::end(word), action.stage).ptr;
  const std::string_view name = known(action.op).name;
  end = std::copy(name.begin(), name.end(), end);
  if (!of_whole_stage(action.op)) end = std::to_chars(end, std::end(word), action.micro).ptr;
  words.append(word, end);
}

std::string text(const Action& action) {
  std::string word;
  append_text(word, action);
  return word;
}

Action parse_action(std::string_view word) {
  const size_t name_begin = std::min(word.find_first_not_of(kDigits), word.size());
  const size_t last_letter = word.find_last_not_of(kDigits);
  if (name_begin == 0 || last_letter == word.npos || last_letter < name_begin) {
    refuse(word, "must be a stage, an operation and a microbatch, as in 0F0");
  }
  const std::string_view name = word.substr(name_begin, last_letter + 1 - name_begin);
  const std::string_view micro = word.substr(last_letter + 1);
  for (const auto& known : kOpNames) {
    if (known.name != name) continue;
    const bool whole_stage = of_whole_stage(known.op);
    if (whole_stage != micro.empty()) {
      refuse(word, whole_stage ? "is of a whole stage and takes no microbatch" : "lacks its microbatch");
    }
    const int stage = number(word.substr(0, name_begin), Action::kMostStages, word);
    return {known.op, stage, whole_stage ? -1 : number(micro, Action::kMostMicrobatches, word)};
  }
  refuse(word, cat("has no known operation: '", name, "'"), nearest_op(name));
}

}  // namespace braid
