// Tokens that may be used and those that may not, and that no error shows one.
#include "braid/control/job_token.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "braid/base/errors.h"
#include "tests/support/scratch_folder.h"

namespace braid::control::job_token_test {
namespace {

class JobTokenFile : public ScratchFolder {
 protected:
  std::string token_file(const std::string& content, mode_t mode) const {
    write(path("token"), content);
    chmod(path("token").c_str(), mode);
    return path("token");
  }
  // Without what was read.
  static std::string error_of(const std::string& path) {
    try {
      token_of_file({"--token-file", path, path});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(JobTokenFile, what_is_made_can_be_read) {
  std::set<std::string> texts;
  for (int i = 0; i < 3; ++i) texts.insert(new_token_text());
  EXPECT_EQ(texts.size(), 3u);
  for (mode_t mode : {0600, 0400}) {
    const auto token = token_of_file({"--token-file", "", token_file(*texts.begin() + "\n", mode)});
    EXPECT_TRUE(std::ranges::equal(token.secret.bytes(), token_of_text("BRAID_TOKEN", *texts.begin()).secret.bytes()));
    unlink(path("token").c_str());
  }
  const JobToken token = token_of_text("", "00ff0A" + std::string(58, '1'));
  const auto bytes = token.secret.bytes();
  EXPECT_EQ(bytes[1], 255);
  EXPECT_EQ(bytes[2], 10);
  EXPECT_EQ(bytes[31], 17);
}

TEST_F(JobTokenFile, others_may_not_read_it) {
  const std::string text = new_token_text();
  for (mode_t mode : {0644, 0640, 0606, 0610, 0602}) {
    const std::string file = token_file(text, mode);
    EXPECT_EQ(error_of(file), "--token-file = " + file + ": may be read or written by others: chmod 600 " + file);
  }
}

TEST_F(JobTokenFile, what_is_no_token_is_refused_and_not_shown) {
  const std::string text = new_token_text();
  for (const std::string& content : {text.substr(1), text + "0", text + "\n" + text, "g" + text.substr(1),
                                     std::string(10'000, 'a'), std::string(), text.substr(0, 63) + '\0'}) {
    const std::string error = error_of(token_file(content, 0600));
    EXPECT_NE(error.find("does not hold 64 hexadecimal digits"), std::string::npos) << error;
    const bool shown = content.size() > 8 && error.find(content.substr(0, 8)) != std::string::npos;
    EXPECT_FALSE(shown) << error;
  }
  try {
    token_of_text("BRAID_TOKEN", text + "x");
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()).find(text.substr(0, 8)), std::string::npos);
    EXPECT_EQ(std::string(error.what()).find("BRAID_TOKEN: "), 0u);
    EXPECT_EQ(error.problems()[0].value, "");
  }
}

TEST_F(JobTokenFile, only_a_regular_file_of_ones_own) {
  EXPECT_NE(error_of(path("none")).find("No such file"), std::string::npos);
  EXPECT_NE(error_of(folder_).find("is no regular file"), std::string::npos);
  mkfifo(path("pipe").c_str(), 0600);
  EXPECT_NE(error_of(path("pipe")).find("is no regular file"), std::string::npos);
  const std::string file = token_file(new_token_text(), 0600);
  if (chown(file.c_str(), 12345, -1) != 0) GTEST_SKIP() << "only root gives files away";
  EXPECT_NE(error_of(file).find("belongs to user 12345"), std::string::npos);
}

}  // namespace
}  // namespace braid::control::job_token_test
