// Schedules out of configurations: tables of actions that cannot be trained with.
#include "braid/train/step_schedule.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/schedule/generators.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::step_schedule_test {
namespace {

class ScheduleFile : public ScratchFolder {
 protected:
  RunSpec spec_of(const std::string& table, int ranks, int microbatches) {
    write(path("table.csv"), table);
    RunSpec spec = tiny_spec(6, microbatches);
    spec.mesh.pipe = ranks;
    spec.pipeline.schedule = "file:" + path("table.csv");
    return spec;
  }
  static std::string refusal(const RunSpec& spec) {
    try {
      refuse_faulty_schedule(spec);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }
};

constexpr const char* kAsynchronous =
    "0F0,0F1,0B0,0UPDATE0,0B1,0UPDATE1\n"
    "1F0,1B0,1UPDATE0,1F1,1B1,1UPDATE1\n";

TEST_F(ScheduleFile, UpdatesBringTheRefusalsOfAsynchronousSchedules) {
  RunSpec spec = spec_of(kAsynchronous, 2, 2);
  EXPECT_NE(refusal(spec).find("with tied embedding, since"), std::string::npos) << refusal(spec);
  spec.model.output_weights = OutputWeights::Untied;
  EXPECT_EQ(refusal(spec), "accepted");
  spec.train.dtype = DType::Float16;
  EXPECT_NE(refusal(spec).find("with loss scaling, since"), std::string::npos) << refusal(spec);
}

TEST_F(ScheduleFile, TwoDirectionsBringTheRefusalsOfMirroredSchedules) {
  RunSpec spec = spec_of("0F0,1F1,1B1,0B0\n1F0,1B0,0F1,0B1\n", 2, 2);
  EXPECT_EQ(refusal(spec), "accepted");
  spec.sync.replication = ReplicationKind::LocalSgd;
  EXPECT_NE(refusal(spec).find("with bidirectional pipeline, since"), std::string::npos) << refusal(spec);
}

TEST_F(ScheduleFile, EveryRankHoldsAStage) {
  EXPECT_NE(refusal(spec_of("0F0,0B0\n,\n1F0,1B0\n", 3, 1)).find("rank 1 holds no stage"), std::string::npos);
}

TEST_F(ScheduleFile, MirroredDirectionsAreHalves) {
  const std::string table = "0F0,0F1,1F2,1B2,0B0,0B1\n1F0,1B0,1F1,1B1,0F2,0B2\n";
  EXPECT_NE(refusal(spec_of(table, 2, 3)).find("2 of 3 microbatches go one way"), std::string::npos)
      << refusal(spec_of(table, 2, 3));
}

}  // namespace
}  // namespace braid::train::step_schedule_test
