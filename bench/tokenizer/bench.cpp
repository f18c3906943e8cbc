// Measures how fast text becomes tokens, on one thread.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "braid/base/clock.h"
#include "braid/base/text.h"
#include "braid/tokenize/bpe_tokenizer.h"
#include "braid/tokenize/tokenizer_file.h"
#include "braid/tokenize/wordpiece_file.h"

namespace braid {
namespace {

constexpr int kRounds = 15;

std::string content(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(text).str();
}

// The least seconds of several calls.
template <class Call>
double best_seconds(int rounds, const Call& call) {
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const double begin = now_seconds();
    call();
    best = std::min(best, now_seconds() - begin);
  }
  return best;
}

void print(const char* what, double megabytes, double seconds) {
  std::cout << "| " << what << " | " << fixed(megabytes / seconds, 1) << " |\n";
}

bool has_wordpiece(const std::string& tokenizer_path) {
  std::ifstream file(tokenizer_path.ends_with(".json") ? tokenizer_path : tokenizer_path + "/tokenizer.json");
  return file && tokenize::is_wordpiece(nlohmann::json::parse(file));
}

void measure_cutting(const char* what, const std::string& text, tokenize::PieceCursor& cursor) {
  const double seconds = best_seconds(kRounds, [&] {
    cursor.reset(text);
    for (size_t end = 0; end < text.size();) end = cursor.next();
  });
  print(what, static_cast<double>(text.size()) / 1e6, seconds);
}

int measure(const char* tokenizer_path, const char* text_path) {
  const std::string text = content(text_path);
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  std::vector<uint32_t> tokens;
  const auto encode = [&](const tokenize::Tokenizer& tokenizer) {
    tokens.clear();
    tokenizer.encode_append(text, tokens);
  };
  const auto tokenizer = tokenize::make_tokenizer(tokenizer_path);
  const double warm = best_seconds(kRounds, [&] { encode(*tokenizer); });
  double cold = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto fresh = tokenize::make_tokenizer(tokenizer_path);
    cold = std::min(cold, best_seconds(1, [&] { encode(*fresh); }));
  }
  print("braid, encode", megabytes, warm);
  print("braid, encode, empty cache", megabytes, cold);
  if (has_wordpiece(tokenizer_path)) {
    tokenize::BertPieces pieces{tokenize::BertRules()};
    measure_cutting("braid, cutting alone", text, pieces);
  } else {
    const tokenize::PretokenizerSpec spec = tokenize::read_bpe(tokenizer_path).pretokenizer;
    measure_cutting("braid, cutting alone, scanner", text, *tokenize::cut_by(spec));
    measure_cutting("braid, cutting alone, PCRE2", text, *tokenize::cut_by_general_engine(spec));
  }
  const std::vector<int> ids(tokens.begin(), tokens.end());
  print("braid, decode", megabytes, best_seconds(kRounds, [&] { tokenizer->decode(ids); }));
  std::cerr << text.size() << " bytes, " << tokens.size() << " tokens; loading took "
            << fixed(1e3 * best_seconds(3, [&] { tokenize::make_tokenizer(tokenizer_path); }), 0) << " ms\n";
  return 0;
}

}  // namespace
}  // namespace braid

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: bench_tokenizer TOKENIZER TEXT\n";
    return 2;
  }
  return braid::measure(argv[1], argv[2]);
}
