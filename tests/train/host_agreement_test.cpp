// Thread ranks that stand for hosts, each with files of its own.
#include <gtest/gtest.h>

#include <filesystem>

#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/spec/fields.h"
#include "braid/train/run_data.h"
#include "tests/support/scratch_folder.h"

namespace braid::train::host_agreement_test {
namespace {

class HostAgreement : public ScratchFolder {};

struct HostInput {
  RunSpec spec;
  data::CorpusOrigin origin;
};

HostInput host_input(uint64_t text, uint64_t tokenizer) {
  return {{}, {.sources = {{.digest = {text, DigestKind::Xxh3}}}, .tokenizer = tokenizer}};
}

// Returns the message to each host; "" for one that may begin.
std::vector<std::string> told(const std::vector<HostInput>& hosts) {
  std::vector<std::string> told(hosts.size());
  run_ranks(static_cast<int>(hosts.size()), [&](Communicator& world) {
    const auto rank = static_cast<size_t>(world.rank());
    try {
      require_same_inputs(hosts[rank].spec, hosts[rank].origin, world);
    } catch (const ConfigError& error) {
      told[rank] = error.what();
    }
  });
  return told;
}

std::string rule(const std::string& key, const std::vector<int>& ranks) {
  std::vector<std::string> others;
  for (const int rank : ranks) others.push_back(cat("rank ", rank, " on ", host_name()));
  return cat(key, ": must name the same files on all hosts; those of ", joined(others), " are others");
}

TEST_F(HostAgreement, equal_files_begin) {
  EXPECT_EQ(told({host_input(7, 8), host_input(7, 8)}), std::vector<std::string>(2));
}

TEST_F(HostAgreement, other_data_and_another_tokenizer_are_refused_on_all) {
  const std::string wanted = rule("data.paths", {1, 2}) + "\n" + rule("data.tokenizer", {2});
  EXPECT_EQ(told({host_input(7, 8), host_input(9, 8), host_input(9, 9)}), std::vector<std::string>(3, wanted));
}

// Under one name, as it is on all hosts; here each has its own.
TEST_F(HostAgreement, other_weights_to_begin_with_are_refused_on_all) {
  for (const auto& [file, other] :
       {std::pair("manifest.json", "{}"), {"config.json", "{}"}, {"model.safetensors", "x"}}) {
    std::vector<HostInput> hosts(2, host_input(7, 8));
    for (const bool second : {false, true}) {
      const std::string weights = path(cat(file, second));
      std::filesystem::create_directories(weights);
      write(weights + "/" + file, second ? other : "");
      hosts[second].spec.train.init = weights;
    }
    EXPECT_EQ(told(hosts), std::vector<std::string>(2, rule("train.init", {1}))) << file;
    for (HostInput& host : hosts) std::swap(host.spec.train.init, host.spec.train.resume);
    EXPECT_EQ(told(hosts), std::vector<std::string>(2, rule("train.resume", {1}))) << file;
  }
}

}  // namespace
}  // namespace braid::train::host_agreement_test
