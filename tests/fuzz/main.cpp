// fuzz TARGET [--seconds N] [--seed N] [--keep DIR] [CORPUS ...]
//
// Runs the reader of a format on the seeds of its target and on every file of the folders CORPUS, then on changes of
// them for N seconds. An input that ends the process is left in fuzz-TARGET.input in the current folder, and can be
// given as CORPUS (a file). --keep writes there, at the end, every input that reached something new.
#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "braid/base/digest.h"
#include "braid/base/text.h"
#include "tests/fuzz/fuzzer.h"

extern "C" void __sanitizer_set_death_callback(void (*callback)());

// No reader makes more of its input than a small multiple of it.
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=256:detect_leaks=1:detect_stack_use_after_return=0";
}

namespace braid::fuzz {
namespace {

namespace fs = std::filesystem;

struct Request {
  std::string target, keep;
  std::vector<std::string> corpus;
  double seconds = 0;
  uint64_t seed = 1;
};

std::string left_input;  // where input_at_hand() goes when the process ends

void leave_input() { std::ofstream(left_input, std::ios::binary) << input_at_hand(); }

void on_alarm(int) {
  leave_input();
  constexpr std::string_view kText = "fuzz: an input took longer than its reader may\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(1);
}

std::vector<std::string> files_of(const std::string& place) {
  if (!fs::is_directory(place)) return {place};
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(place)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(cat(path, " cannot be read"));
  return {std::istreambuf_iterator<char>(file), {}};
}

void keep(const std::vector<std::string>& inputs, const std::string& folder) {
  fs::create_directories(folder);
  for (const std::string& input : inputs) {
    std::ofstream(fs::path(folder) / hex(digest_of(DigestKind::Xxh3, input)), std::ios::binary) << input;
  }
}

void fuzz(const Target& target, const Request& request) {
  Fuzzer fuzzer(target, request.seed);
  for (const std::string& seed : target.seeds()) fuzzer.run(seed);
  for (const std::string& place : request.corpus) {
    for (const std::string& path : files_of(place)) fuzzer.run(content(path));
  }
  const size_t known = fuzzer.num_runs(), edges = fuzzer.num_edges();
  if (edges == 0) throw std::runtime_error("no edge was told: the components are not compiled for it");
  fuzzer.search(request.seconds);
  std::cout << cat(target.name, ": ", known, " inputs replayed, ", fuzzer.num_runs() - known, " new ones; edges ",
                   edges, " -> ", fuzzer.num_edges(), "\n");
  if (!request.keep.empty()) keep(fuzzer.kept(), request.keep);
}

int run(int argc, char** argv) {
  CLI::App app("Feeds a reader of braid's with broken files.");
  Request request;
  std::vector<std::string> names;
  for (const Target& target : targets()) names.push_back(target.name);
  app.add_option("TARGET", request.target)->required()->check(CLI::IsMember(names));
  app.add_option("--seconds", request.seconds);
  app.add_option("--seed", request.seed);
  app.add_option("--keep", request.keep);
  app.add_option("CORPUS", request.corpus);
  CLI11_PARSE(app, argc, argv);
  left_input = cat("fuzz-", request.target, ".input");
  __sanitizer_set_death_callback(leave_input);
  std::signal(SIGALRM, on_alarm);
  try {
    fuzz(*find_target(request.target), request);
  } catch (const std::exception& error) {
    leave_input();
    std::cerr << "fuzz: " << error.what() << "; the input is in " << left_input << "\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace braid::fuzz

int main(int argc, char** argv) { return braid::fuzz::run(argc, argv); }
