// Messages and frames: there and back, cut at every byte, and whatever bytes there are.
#include "braid/control/job_message.h"

#include <gtest/gtest.h>

#include <random>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "tests/support/sampled.h"

namespace braid::control::job_message_test {
namespace {

std::vector<JobMessage> one_of_each() {
  const JobNode node{std::string("h\0st", 4), 3};
  return {JobHello{kJobProtocol, 1, 4, "boot", "gloo 2", {"a = 1", "b = 2"}, node},
          JobTable{{node, {"h2", 1}}},
          JobRefusal{{"one", "two"}},
          JobBroadcastRequest{"word"},
          JobBroadcast{2, "word"},
          JobHeartbeat{},
          JobHeartbeat{"step 7"},
          NodeFailure{3, "closed"}};
}

std::string bytes_of(const JobMessage& message) { return framed_message(message)->substr(4); }

TEST(JobMessage, the_bytes_of_the_documentation) {
  EXPECT_EQ(*framed_message(JobBroadcast{258, "ab"}), std::string("\x0b\0\0\0\x04\x02\x01\0\0\x02\0\0\0ab", 15));
  EXPECT_EQ(*framed_message(JobHeartbeat{"x"}), std::string("\x07\0\0\0\x05\x01\x01\0\0\0x", 11));
  EXPECT_EQ(*framed_message(JobRefusal{{"x"}}), std::string("\x0a\0\0\0\x02\x01\0\0\0\x01\0\0\0x", 14));
}

TEST(JobMessage, there_and_back) {
  for (const auto& message : one_of_each()) {
    const auto back = parse_job_message(bytes_of(message));
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->index(), message.index());
    EXPECT_EQ(bytes_of(*back), bytes_of(message));
  }
  const auto hello = std::get<JobHello>(*parse_job_message(bytes_of(one_of_each()[0])));
  EXPECT_EQ(hello.self.host, std::string("h\0st", 4));
  EXPECT_EQ(hello.num_nodes, 4);
}

TEST(JobMessage, what_is_cut_short_or_too_long_is_none) {
  for (const auto& message : one_of_each()) {
    const std::string bytes = bytes_of(message);
    for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(parse_job_message(bytes.substr(0, size)));
    EXPECT_FALSE(parse_job_message(bytes + "x"));
  }
}

// Its number is known, whatever is behind it.
TEST(JobMessage, of_a_hello_of_another_protocol_only_that_is_read) {
  const auto message = parse_job_message(std::string("\0\x09\0\0\0whatever", 13));
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(std::get<JobHello>(*message).protocol, 9u);
}

// Nothing is read that is not there, and what is read is what its bytes say.
TEST(JobMessage, any_bytes_are_a_message_or_none) {
  std::mt19937 dice(3);
  const auto seeds = one_of_each();
  int parsed = 0;
  for (int round = 0; round < (full_run() ? 2'000'000 : 50'000); ++round) {
    std::string bytes = bytes_of(seeds[dice() % seeds.size()]);
    for (unsigned change = dice() % 4; change > 0; --change) {
      const size_t at = dice() % bytes.size();
      if (dice() % 2 == 0) {
        bytes[at] = static_cast<char>(dice());
      } else {
        bytes = bytes.substr(0, at + 1) + bytes.substr(dice() % bytes.size());
      }
    }
    const auto message = parse_job_message(bytes);
    if (!message) continue;
    ++parsed;
    const auto* hello = std::get_if<JobHello>(&*message);
    if (hello != nullptr && hello->protocol != kJobProtocol) continue;
    EXPECT_EQ(bytes_of(*message), bytes);
  }
  EXPECT_GT(parsed, 1000);
}

TEST(FrameReader, frames_cut_at_every_byte) {
  const std::string stream = *framed("first") + *framed("") + *framed(std::string(300, 'x'));
  for (size_t cut = 0; cut <= stream.size(); ++cut) {
    FrameReader reader;
    EXPECT_TRUE(reader.add(std::string_view(stream).substr(0, cut)));
    EXPECT_TRUE(reader.add(std::string_view(stream).substr(cut)));
    EXPECT_EQ(reader.messages(), (std::deque<std::string>{"first", "", std::string(300, 'x')}));
  }
  FrameReader reader;
  for (char byte : stream) EXPECT_TRUE(reader.add({&byte, 1}));
  EXPECT_EQ(reader.messages().size(), 3u);
}

TEST(FrameReader, a_length_that_no_frame_has_ends_it) {
  FrameReader most, more;
  EXPECT_TRUE(most.add(std::string("\0\0\0\x04", 4)));
  EXPECT_FALSE(more.add(*framed("first") + std::string("\x01\0\0\x04", 4) + "behind"));
  EXPECT_FALSE(more.add(*framed("second")));
  EXPECT_EQ(more.messages(), std::deque<std::string>{"first"});
}

}  // namespace
}  // namespace braid::control::job_message_test
