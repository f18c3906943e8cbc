// Addresses as they are written, and what they stand for.
#include "braid/control/job_address.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"

namespace braid::control::job_address_test {
namespace {

TEST(JobAddress, there_and_back) {
  for (const char* written : {"h0:29500", "10.0.0.1:1", "[::1]:65535", "[fe80::1%eth0]:9"}) {
    EXPECT_EQ(text(parse_job_address("--root", written)), written);
  }
  EXPECT_EQ(parse_job_address("--root", "[::1]:9").host, "::1");
}

TEST(JobAddress, what_is_none_is_refused_by_its_key) {
  for (const char* written : {"", ":", "h0", "h0:", ":9", "h0:0", "h0:65536", "h0:9x", "h0:-9", "h0: 9", "::1:9",
                              "[::1]", "[]:9", "[h]x:9", "h 0:9", "h0:99999999999"}) {
    try {
      parse_job_address("--root", written);
      ADD_FAILURE() << written;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.problems()[0].key, "--root");
      EXPECT_EQ(error.problems()[0].value, written);
    }
  }
}

TEST(JobAddress, loopback_and_all_interfaces) {
  const auto first = [](const std::string& host) { return resolve({host, 80}).found.at(0); };
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(is_loopback(first(host))) << host;
    EXPECT_FALSE(is_wildcard(first(host))) << host;
  }
  for (const char* host : {"10.0.0.1", "2001:db8::1", "::ffff:10.0.0.1"}) {
    EXPECT_FALSE(is_loopback(first(host)) || is_wildcard(first(host))) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "::ffff:0.0.0.0"}) EXPECT_TRUE(is_wildcard(first(host))) << host;
  EXPECT_EQ(text(first("::1")), "[::1]:80");
  EXPECT_EQ(text(first("127.0.0.1")), "127.0.0.1:80");
}

TEST(JobAddress, of_this_host_as_others_reach_it) {
  EXPECT_EQ(own_address("--root", {"127.0.0.1", 80}), "127.0.0.1");
  EXPECT_THROW(own_address("--root", {"no host has this name", 80}), ConfigError);
}

TEST(JobAddress, a_host_that_there_is_not) {
  const auto resolved = resolve({"no host has this name", 80});
  EXPECT_TRUE(resolved.found.empty());
  EXPECT_EQ(resolved.fault.find("no host has this name is no known host: "), 0u) << resolved.fault;
}

}  // namespace
}  // namespace braid::control::job_address_test
