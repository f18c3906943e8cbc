// Requirements of spikes and comparisons of replicas on replication and schedules.
#include <gtest/gtest.h>

#include "tests/spec/complaint.h"

namespace braid::spec::supervision_rules_test {
namespace {

TEST(SupervisionRules, AllRanksKnowTheLossBeforeTheUpdate) {
  const std::string server = "sync.replication=parameter-server", pipe = "mesh.pipe=2", batch = "train.batch=16";
  const std::string asynchronous = "pipeline.schedule=pipedream", untied = "model.output_weights=untied";
  const std::string of_servers = " with a parameter server, which updates before all workers have sent their loss";
  const std::string of_stages =
      " in an asynchronous pipeline, whose stages make updates before the step's loss is known";
  expect_complaints({
      {"", {"train.on_spike=skip", "train.spike_threshold=6", "mesh.data=2", "train.check_replicas=5"}, "accepted"},
      {"", {"train.on_spike=rollback", "sync.replication=local-sgd", "mesh.data=2"}, "accepted"},
      {"", {"train.on_spike=skip", server}, "train.on_spike = \"skip\": must be \"stop\"" + of_servers},
      {"", {"train.spike_threshold=6", server}, "train.spike_threshold = 6: must be 0" + of_servers},
      {"",
       {"train.on_spike=rollback", pipe, batch, asynchronous, untied},
       "train.on_spike = \"rollback\": must be \"stop\"" + of_stages},
      {"",
       {"train.check_replicas=3", server},
       "train.check_replicas = 3: must be 0 with a parameter server: workers' weights are copies of the servers', each "
       "as of its own last pull; nearest valid is 0"},
      {"", {"train.on_spike=forget"}, "train.on_spike = \"forget\": must be \"stop\", \"skip\" or \"rollback\""},
  });
}

}  // namespace
}  // namespace braid::spec::supervision_rules_test
