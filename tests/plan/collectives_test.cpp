// Rings and trees by hand: links of 100 bytes a second within a node and 10 across, 1 and 5 seconds of latency.
#include "braid/plan/collectives.h"

#include <gtest/gtest.h>

namespace braid::plan::collectives_test {
namespace {

const Cluster kCluster{.node = {100, 1}, .network = {10, 5}};

TEST(GroupLinks, InANode) {
  const GroupLinks links(kCluster, {4, 4});
  EXPECT_DOUBLE_EQ(links.all_gather_seconds(1000), 3 * (1 + 2.5));
  EXPECT_DOUBLE_EQ(links.all_reduce_seconds(1000), 6 * (1 + 2.5));    // ring
  EXPECT_DOUBLE_EQ(links.all_reduce_seconds(4), 2 * (2 * 1 + 0.04));  // tree
  EXPECT_DOUBLE_EQ(links.send_seconds(1000), 11);
}

// Two of four on each node: two rings enter each node.
TEST(GroupLinks, AcrossNodes) {
  const GroupLinks links(kCluster, {4, 2});
  EXPECT_DOUBLE_EQ(links.all_gather_seconds(1000), 3 * (5 + 250.0 / 20));
  EXPECT_DOUBLE_EQ(links.send_seconds(1000), 105);
}

TEST(GroupLinks, WhatWasMeasuredCountsInPlaceOfTheFormula) {
  Cluster cluster = kCluster;
  cluster.all_reduces = {{2, 2, 100, 8}, {4, 4, 100, 30}, {4, 4, 1000, 42}};
  const GroupLinks links(cluster, {4, 4});
  EXPECT_DOUBLE_EQ(links.all_reduce_seconds(100), 30);
  EXPECT_DOUBLE_EQ(links.all_reduce_seconds(1000), 42);
  EXPECT_DOUBLE_EQ(links.all_reduce_seconds(4000), 2 * 6 * (1 + 10));   // twice the formula, as of 1000
  EXPECT_DOUBLE_EQ(links.all_gather_seconds(1000), 2 * 3 * (1 + 2.5));  // likewise
  EXPECT_DOUBLE_EQ(GroupLinks(cluster, {8, 8}).all_reduce_seconds(1000), 2 * 2 * (3 + 10));  // nearest: 4
  EXPECT_DOUBLE_EQ(GroupLinks(cluster, {2, 2}).all_reduce_seconds(100), 8);
  EXPECT_DOUBLE_EQ(GroupLinks(cluster, {4, 2}).all_reduce_seconds(1000),
                   GroupLinks(kCluster, {4, 2}).all_reduce_seconds(1000));  // no group across nodes was measured
}

TEST(GroupLinks, OfOneRank) {
  const GroupLinks links(kCluster, {1, 1});
  EXPECT_EQ(links.all_reduce_seconds(1000), 0);
  EXPECT_EQ(links.all_gather_seconds(1000), 0);
}

}  // namespace
}  // namespace braid::plan::collectives_test
