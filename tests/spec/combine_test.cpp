// Which kind of pipeline a schedule is follows from its row in the table of schedules, and with it every verdict.
#include "braid/spec/combine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string_view>

namespace braid::spec::combine_test {
namespace {

TEST(PipelineKind, OfEverySchedule) {
  using enum spec::Feature;
  const std::map<std::string_view, Feature> kinds = {
      {"naive", FlushPipeline},
      {"gpipe", FlushPipeline},
      {"1f1b", FlushPipeline},
      {"interleaved", ChunkedPipeline},
      {"looped-bfs", ChunkedPipeline},
      {"zb-h1", ZeroBubblePipeline},
      {"zb-h2", ZeroBubblePipeline},
      {"zb-1p", ZeroBubblePipeline},
      {"zb-2p", ZeroBubblePipeline},
      {"interleaved-zb", ZeroBubblePipeline},
      {"zb-v", VShapedPipeline},
      {"dualpipev", VShapedPipeline},
      {"v-half", VShapedPipeline},
      {"v-min", VShapedPipeline},
      {"dualpipe", MirroredPipeline},
      {"pipedream", AsynchronousPipeline},
      {"pipedream-2bw", AsynchronousPipeline},
  };
  ASSERT_EQ(kinds.size(), schedule_traits().size());
  for (const ScheduleTraits& traits : schedule_traits()) {
    EXPECT_EQ(text(pipeline_kind(traits)), text(kinds.at(traits.name))) << traits.name;
    RunSpec spec;
    spec.mesh.pipe = 2;
    spec.pipeline.schedule = traits.name;
    const auto on = features(spec);
    EXPECT_EQ(std::count(on.begin(), on.end(), kinds.at(traits.name)), 1) << traits.name;
  }
}

// A new schedule is a row with traits: nothing else has to know its name for it to be refused where its kind is.
TEST(PipelineKind, OfAScheduleThatNobodyKnows) {
  const ScheduleTraits mirrored = {
      .name = "mine", .placement = schedule::StagePlacement::Mirrored, .splits_backward = true};
  EXPECT_EQ(combination(pipeline_kind(mirrored), Feature::UserPipeline).verdict, Verdict::Refused);
  const ScheduleTraits late = {.name = "late", .chunks = 2, .versions = schedule::VersionRule::Own};
  EXPECT_EQ(combination(pipeline_kind(late), Feature::TiedEmbedding).verdict, Verdict::Refused);
  const ScheduleTraits plain = {.name = "plain"};
  EXPECT_EQ(combination(pipeline_kind(plain), Feature::TiedEmbedding).verdict, Verdict::Supported);
}

}  // namespace
}  // namespace braid::spec::combine_test
