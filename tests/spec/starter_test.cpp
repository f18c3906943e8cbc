// The first configuration that braid gives: it is a legal run, and so is each of the lines that it has as comments.
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "braid/spec/describe.h"
#include "braid/spec/parse.h"

namespace braid::spec::starter_test {
namespace {

TEST(Starter, IsARunAsItIs) {
  const RunSpec run = parse_run(starter_toml(), "run.toml", {});
  EXPECT_EQ(run.data.paths, std::vector<std::string>{"text"});
}

TEST(Starter, HasKeysBehindItsCommentsToo) {
  std::istringstream lines(starter_toml());
  std::string all;
  int num_opened = 0;
  const std::regex commented("# (\\[[a-z]+\\]|[a-z_]+ = .*)");
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    const bool opens = std::regex_match(line, found, commented);
    num_opened += opens;
    all += (opens ? found[1].str() : line) + "\n";
  }
  EXPECT_GT(num_opened, 10);
  EXPECT_NO_THROW(parse_run(all, "run.toml", {"mesh.data=2", "train.device=cpu"}));
}

}  // namespace
}  // namespace braid::spec::starter_test
