// The page of a secret: not in core dumps, not in children, and no child is hurt by it.
#include "braid/control/secret.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace braid::control::secret_test {
namespace {

// The lines of /proc/self/smaps about the mapping at `address`; empty where nothing is mapped.
std::string mapping_at(const void* address) {
  std::ifstream file("/proc/self/smaps");
  std::string lines;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    unsigned long begin = 0, end = 0;
    char dash = 0;
    if (std::istringstream head(line); head >> std::hex >> begin >> dash >> end && dash == '-') {
      const auto number = reinterpret_cast<unsigned long>(address);
      inside = begin <= number && number < end;
    }
    if (inside) lines += line + "\n";
  }
  return lines;
}

// Returns true if `holds` is true in a forked child.
template <typename F>
bool in_child(F holds) {
  const pid_t child = fork();
  if (child == 0) _exit(holds() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(SecretPage, is_dumped_nowhere) {
  const SecretPage page;
  const std::string lines = mapping_at(page.bytes().data());
  EXPECT_NE(lines.find(" dd"), std::string::npos) << lines;  // MADV_DONTDUMP
  EXPECT_NE(lines.find(" dc"), std::string::npos) << lines;  // MADV_DONTFORK
}

TEST(SecretPage, goes_with_its_owner) {
  std::optional<SecretPage> page(std::in_place);
  const void* const address = page->bytes().data();
  SecretPage moved = std::move(*page);
  page.reset();
  EXPECT_EQ(moved.bytes().data(), address);
  moved = SecretPage();
  EXPECT_EQ(mapping_at(address), "");
}

TEST(SecretPage, a_child_does_not_have_it) {
  const SecretPage page;
  EXPECT_NE(mapping_at(page.bytes().data()), "");
  EXPECT_TRUE(in_child([&] { return mapping_at(page.bytes().data()).empty(); }));
}

// A child's own mapping at the same address is independent.
TEST(SecretPage, a_child_may_destroy_it) {
  std::optional<SecretPage> page(std::in_place);
  EXPECT_TRUE(in_child([&] {
    void* const address = page->bytes().data();
    void* const own = mmap(address, SecretPage::kBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (own != address) return false;
    std::memset(own, 'x', SecretPage::kBytes);
    page.reset();
    return static_cast<char*>(own)[7] == 'x';
  }));
}

}  // namespace
}  // namespace braid::control::secret_test
