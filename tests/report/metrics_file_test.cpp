// Lines reach the disk at once and survive a resume after a crash.
#include "braid/report/metrics_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "braid/base/errors.h"

namespace braid::report::metrics_file_test {
namespace {

class MetricsFileTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    path_ = std::filesystem::path(testing::TempDir()) / ("metrics_" + test + "_" + std::to_string(getpid()));
    std::filesystem::remove(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string contents() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  std::filesystem::path path_;
};

// A full disk: while one exists, every write of this process to a file fails.
class NoFileGrows {
 public:
  NoFileGrows() : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~NoFileGrows() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }
  NoFileGrows(const NoFileGrows&) = delete;

 private:
  void (*signal_)(int);
  rlimit before_{};
};

TEST_F(MetricsFileTest, EveryLineIsThereAtOnce) {
  MetricsFile file(path_);
  file.write(MetricsLine().add("step", 1));
  EXPECT_EQ(contents(), "{\"step\":1}\n");
  file.write(MetricsLine().add("step", 2));
  EXPECT_EQ(contents(), "{\"step\":1}\n{\"step\":2}\n");
}

TEST_F(MetricsFileTest, AResumeAppends) {
  MetricsFile(path_).write(MetricsLine().add("step", 1));
  MetricsFile(path_).write(MetricsLine().add("step", 2));
  EXPECT_EQ(contents(), "{\"step\":1}\n{\"step\":2}\n");
}

TEST_F(MetricsFileTest, ALineCutShortDoesNotSpoilTheNext) {
  std::ofstream(path_) << "{\"step\":1}\n{\"st";
  MetricsFile(path_).write(MetricsLine().add("step", 2));
  EXPECT_EQ(contents(), "{\"step\":1}\n{\"st\n{\"step\":2}\n");
}

TEST_F(MetricsFileTest, AFileThatWasRemovedTakesNoMoreLines) {
  MetricsFile file(path_);
  file.write(MetricsLine().add("step", 1));
  std::filesystem::remove(path_);
  EXPECT_THROW(file.write(MetricsLine().add("step", 2)), IoError);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(MetricsFileTest, FaultsNameThePath) {
  const std::string nowhere = (path_ / "no" / "metrics.jsonl").string();
  try {
    MetricsFile file(nowhere);
    FAIL();
  } catch (const IoError& error) {
    EXPECT_EQ(error.path(), nowhere);
  }
  MetricsFile full(path_);
  const NoFileGrows full_disk;
  EXPECT_THROW(full.write(MetricsLine().add("step", 1)), IoError);
}

}  // namespace
}  // namespace braid::report::metrics_file_test
