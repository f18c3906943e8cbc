// Lines of files: ends, limits, and what is no regular file.
#include "braid/base/line_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <vector>

#include "braid/base/errors.h"
#include "tests/support/scratch_folder.h"

namespace braid::line_reader_test {
namespace {

class Lines : public ScratchFolder {
 protected:
  std::vector<std::string> lines_of(const std::string& text, int64_t limit = 100) {
    write(path("lines"), text);
    LineReader reader(path("lines"), Links::Followed, limit);
    std::vector<std::string> lines;
    for (std::string line; reader.next(line);) lines.push_back(line);
    return lines;
  }
};

using Strings = std::vector<std::string>;

TEST_F(Lines, ComeAsTheyAre) {
  EXPECT_EQ(lines_of(""), Strings{});
  EXPECT_EQ(lines_of("\n"), Strings{""});
  EXPECT_EQ(lines_of("a\n\nb"), (Strings{"a", "", "b"}));
  EXPECT_EQ(lines_of("a\nb\r\n"), (Strings{"a", "b\r"}));
}

TEST_F(Lines, CrossTheBlocksOfTheFile) {
  const std::string a((1 << 20) - 1, 'a'), b(3 << 20, 'b');
  EXPECT_EQ(lines_of(a + "\n" + b + "\nc", 4 << 20), (Strings{a, b, "c"}));
}

TEST_F(Lines, AreLimited) {
  EXPECT_EQ(lines_of("four\n", 4), Strings{"four"});
  try {
    lines_of("four\nfive5\n", 4);
    ADD_FAILURE() << "a line above the limit";
  } catch (const LongLine& error) {
    EXPECT_EQ(error.offset(), 5);
  }
}

TEST_F(Lines, AreReadFromAnyPlaceOn) {
  write(path("lines"), "a\nbc\nd");
  LineReader reader(path("lines"), Links::Followed, 100);
  std::string line;
  for (const auto& [from, text, behind] :
       {std::tuple<int64_t, const char*, int64_t>(2, "bc", 5), {5, "d", 6}, {0, "a", 2}, {6, "", 6}}) {
    reader.seek(from);
    reader.next(line);
    EXPECT_EQ(line, text);
    EXPECT_EQ(reader.offset(), behind);
  }
}

TEST_F(Lines, OfAPipeAreRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THROW(LineReader(path("pipe"), Links::Followed), IoError);
}

}  // namespace
}  // namespace braid::line_reader_test
