// Sums probabilities from the likeliest token on. A few tokens decide most draws, so only these are sorted.
#include "braid/train/token_choice.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace braid::train {

std::string StopWords::add(std::string_view piece) {
  for (const char byte : piece) {
    if (met_) break;
    held_ += byte;
    size_t longest = 0;
    for (const std::string& word : words_) {
      if (held_.ends_with(word)) longest = std::max(longest, word.size());
    }
    if (longest == 0) continue;
    met_ = true;
    held_.resize(held_.size() - longest);
  }
  const size_t certain = met_ ? held_.size() : held_.size() - held_back();
  std::string text = held_.substr(0, certain);
  held_.erase(0, certain);
  return text;
}

std::string StopWords::end() { return std::exchange(held_, ""); }

// Returns the number of bytes at the end with which a stop word begins.
size_t StopWords::held_back() const {
  size_t most = 0;
  for (const std::string& word : words_) {
    for (size_t size = std::min(word.size() - 1, held_.size()); size > most; --size) {
      if (held_.ends_with(std::string_view(word).substr(0, size))) most = size;
    }
  }
  return most;
}

namespace {

constexpr size_t kFirstSorted = 256, kMoreSorted = 16;  // tokens, and the factor if they do not decide
constexpr double kNothing = -60;                        // exp() of less does not change a sum with 1

struct Candidates {
  std::vector<size_t> tokens;   // unsorted until sort_more()
  std::vector<double> weights;  // by token; the largest is 1
};

Candidates candidates(std::span<const double> scores, const TokenChoice& choice) {
  const double most = *std::max_element(scores.begin(), scores.end());
  Candidates found;
  found.weights.resize(scores.size());
  for (size_t token = 0; token < scores.size(); ++token) {
    const double power = (scores[token] - most) / choice.temperature;  // difference first: a temperature may be tiny
    if (!(power >= kNothing)) continue;
    found.tokens.push_back(token);
    found.weights[token] = std::exp(power);
  }
  return found;
}

// Sorts so that the likeliest `count` tokens come first, the likeliest of all first. The first `from` are sorted
// already.
void sort_more(Candidates& all, size_t from, size_t count) {
  const auto likelier = [&](size_t a, size_t b) {
    return all.weights[a] != all.weights[b] ? all.weights[a] > all.weights[b] : a < b;
  };
  const auto begin = all.tokens.begin() + static_cast<int64_t>(from);
  const auto end = all.tokens.begin() + static_cast<int64_t>(count);
  if (end != all.tokens.end()) std::nth_element(begin, end - 1, all.tokens.end(), likelier);
  std::sort(begin, end, likelier);
}

}  // namespace

size_t chosen_place(std::span<const double> probabilities, double top_p, double draw) {
  size_t count = probabilities.size();
  double mass = 1;
  if (top_p < 1) {
    mass = probabilities[0];
    for (count = 1; count < probabilities.size() && mass < top_p; ++count) mass += probabilities[count];
  }
  size_t place = 0;
  for (double below = probabilities[0]; place + 1 < count && draw * mass >= below; below += probabilities[++place]) {
  }
  return place;
}

size_t chosen_token(std::span<const double> scores, const TokenChoice& choice, double draw) {
  if (choice.temperature <= 0) {
    return static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  }
  Candidates all = candidates(scores, choice);
  size_t sorted = 0, most = all.tokens.size();
  if (choice.top_k > 0 && static_cast<size_t>(choice.top_k) < most) {
    most = static_cast<size_t>(choice.top_k);
    sort_more(all, 0, most);
    all.tokens.resize(sorted = most);
  }
  double total = 0;
  for (const size_t token : all.tokens) total += all.weights[token];
  std::vector<double> probabilities;
  for (size_t wanted = kFirstSorted;; wanted *= kMoreSorted) {
    const size_t count = std::max(sorted, std::min(wanted, most));
    if (count > sorted) sort_more(all, sorted, count);
    sorted = count;
    for (size_t i = probabilities.size(); i < sorted; ++i) probabilities.push_back(all.weights[all.tokens[i]] / total);
    const double mass = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
    const bool decides = sorted == most || (choice.top_p < 1 ? mass >= choice.top_p : mass > draw);
    if (decides) return all.tokens[chosen_place(probabilities, choice.top_p, draw)];
  }
}

double log_probability(std::span<const double> scores, size_t token) {
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - most);
  return scores[token] - most - std::log(sum);
}

}  // namespace braid::train
