// The token that commands on one host make themselves: all processes of a user get the same one, and nobody else does.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <vector>

#include "braid/base/errors.h"
#include "braid/control/job_token.h"
#include "tests/support/scratch_folder.h"

namespace braid::control::host_token_test {
namespace {

constexpr uid_t kSomebodyElse = 12345;

std::string bytes_of(const JobToken& token) { return {token.secret.bytes().begin(), token.secret.bytes().end()}; }

class HostToken : public ScratchFolder {
 protected:
  HostToken() { chmod(folder_.c_str(), 0755); }

  static std::string error_of(const std::string& folder) {
    try {
      token_of_host(folder);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
  // Makes the path somebody else's; false where this user may not.
  bool given_away(const std::string& name) const {
    return lchown(path(name).c_str(), kSomebodyElse, static_cast<gid_t>(-1)) == 0;
  }

  const std::string own_ = path("own");
};

TEST_F(HostToken, is_made_once_for_its_user_alone) {
  const std::string made = bytes_of(token_of_host(own_));
  EXPECT_EQ(bytes_of(token_of_host(own_)), made);
  EXPECT_NE(bytes_of(token_of_host(path("other"))), made);
  struct stat folder {
  }, file{};
  stat(own_.c_str(), &folder);
  stat((own_ + "/token").c_str(), &file);
  EXPECT_EQ(folder.st_mode & 07777, 0700u);
  EXPECT_EQ(file.st_mode & 07777, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(own_), {}), 1);
}

TEST_F(HostToken, processes_that_start_together_have_the_same) {
  constexpr int kProcesses = 16;
  int go[2], told[2];
  ASSERT_EQ(pipe(go) + pipe(told), 0);
  for (int i = 0; i < kProcesses; ++i) {
    if (fork() != 0) continue;
    char byte = 0;
    close(go[1]);
    if (read(go[0], &byte, 1) != 0) _exit(1);  // until all are there
    const std::string bytes = bytes_of(token_of_host(own_));
    _exit(::write(told[1], bytes.data(), bytes.size()) == ssize_t(bytes.size()) ? 0 : 1);
  }
  close(go[1]);
  std::set<std::string> tokens;
  for (int i = 0; i < kProcesses; ++i) {
    std::string bytes(Secret::kBytes, '\0');
    ASSERT_EQ(read(told[0], bytes.data(), bytes.size()), ssize_t(bytes.size()));
    tokens.insert(bytes);
  }
  while (wait(nullptr) > 0) {
  }
  EXPECT_EQ(tokens, std::set{bytes_of(token_of_host(own_))});
}

TEST_F(HostToken, another_user_cannot_read_it) {
  if (geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  token_of_host(own_);
  const pid_t child = fork();
  if (child == 0) {
    const bool became = setgid(kSomebodyElse) == 0 && setuid(kSomebodyElse) == 0;
    _exit(became && open((own_ + "/token").c_str(), O_RDONLY) < 0 && !error_of(own_).empty() ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(HostToken, a_folder_that_somebody_else_prepared_is_refused) {
  mkdir(own_.c_str(), 0755);
  EXPECT_EQ(error_of(own_).find(own_ + ": is open to other users"), 0u) << error_of(own_);
  chmod(own_.c_str(), 0700);
  symlink(own_.c_str(), path("link").c_str());
  EXPECT_EQ(error_of(path("link")).find(path("link") + ": cannot be opened: "), 0u) << error_of(path("link"));
  EXPECT_FALSE(std::filesystem::exists(own_ + "/token"));
  if (!given_away("own")) GTEST_SKIP() << "only root gives files away";
  EXPECT_EQ(error_of(own_).find(own_ + ": belongs to user 12345"), 0u) << error_of(own_);
}

TEST_F(HostToken, a_file_that_somebody_else_prepared_is_refused) {
  token_of_host(own_);
  const std::string file = own_ + "/token";
  std::filesystem::rename(file, path("elsewhere"));
  symlink(path("elsewhere").c_str(), file.c_str());
  EXPECT_EQ(error_of(own_).find(file + ": cannot be read: "), 0u) << error_of(own_);
  unlink(file.c_str());
  std::filesystem::rename(path("elsewhere"), file);
  chmod(file.c_str(), 0644);
  EXPECT_EQ(error_of(own_).find(file + ": may be read or written by others"), 0u) << error_of(own_);
  chmod(file.c_str(), 0600);
  EXPECT_EQ(error_of(own_), "");
  if (!given_away("own/token")) GTEST_SKIP() << "only root gives files away";
  EXPECT_EQ(error_of(own_).find(file + ": belongs to user 12345"), 0u) << error_of(own_);
}

}  // namespace
}  // namespace braid::control::host_token_test
