// Event files byte for byte as the reference writes them (tools/reference/tensorboard_events.py).
#include "braid/report/tensorboard_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "braid/base/errors.h"

namespace braid::report::tensorboard_file_test {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<Scalar> golden_scalars() { return {{"loss/train", 2.5}, {"learning_rate", 3e-4}, {"odd µ tag", -0.0}}; }

class TensorboardFileTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = std::filesystem::path(testing::TempDir()) / ("events_" + test + "_" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

// RFC 3720, appendix B.4, and the customary check value.
TEST(TfRecord, CheckSums) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(TfRecord, AddsSixteenBytes) { EXPECT_EQ(tf_record("abc").size(), 19u); }

TEST_F(TensorboardFileTest, TheBytesOfTheReference) {
  std::filesystem::create_directory(folder_);
  TensorboardFile file(folder_ / "events", 1700000000.25, 300);
  for (const int64_t step : {int64_t{0}, int64_t{301}, int64_t{1} << 40}) {
    file.write({1700000001.5, step, golden_scalars()});
  }
  EXPECT_EQ(contents(folder_ / "events"), contents(BRAID_SOURCE_DIR "/tests/report/data/events.golden"));
}

TEST_F(TensorboardFileTest, ValuesThatAreNoNumbersAreLeftOut) {
  const double nan = std::nan("");
  EXPECT_EQ(encoded_event({1, 2, {{"a", nan}, {"b", 1}}}), encoded_event({1, 2, {{"b", 1}}}));
  const auto file = new_tensorboard_file(folder_, "host", 5.5, 0);
  const auto size = [&] { return std::filesystem::file_size(folder_ / event_file_name(5, "host", 0)); };
  const auto before = size();
  file->write({1, 2, {{"a", nan}, {"b", std::numeric_limits<double>::infinity()}}});
  EXPECT_EQ(size(), before);
}

TEST_F(TensorboardFileTest, ARestartWritesAFileOfItsOwn) {
  new_tensorboard_file(folder_, "a/host", 5.5, 0);
  new_tensorboard_file(folder_, "a/host", 5.9, 40);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "events.out.tfevents.0000000005.a_host.0"));
  EXPECT_EQ(contents(folder_ / "events.out.tfevents.0000000005.a_host.1"),
            tf_record(encoded_file_version(5.9)) + tf_record(encoded_session_start(5.9, 41)));
}

TEST_F(TensorboardFileTest, ANameThatCannotBeLookedAtIsAFaultOfTheWorld) {
  std::filesystem::create_directory(folder_);
  const std::string name = event_file_name(5, "host", 0);
  std::filesystem::create_symlink(name, folder_ / name);
  EXPECT_THROW(new_tensorboard_file(folder_, "host", 5.5, 0), IoError);
}

TEST_F(TensorboardFileTest, FaultsNameThePath) {
  try {
    TensorboardFile file("/nowhere/events", 0, 0);
    FAIL();
  } catch (const IoError& error) {
    EXPECT_EQ(error.path(), "/nowhere/events");
  }
}

}  // namespace
}  // namespace braid::report::tensorboard_file_test
