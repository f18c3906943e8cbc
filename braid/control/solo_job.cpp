// A job of one node. It receives its own messages.
#include <utility>

#include "braid/control/join_job.h"

namespace braid::control {
namespace {

constexpr int kSoloWatchMilliseconds = 60'000;

class SoloJob final : public JobControl {
 public:
  explicit SoloJob(JobNode self) : nodes_{std::move(self)} {}

  int node() const override { return 0; }
  const std::vector<JobNode>& nodes() const override { return nodes_; }
  void broadcast(const std::string& bytes) override { events_.push_back({JobEvent::Kind::Broadcast, 0, bytes}); }
  void report_progress(const std::string& bytes) override { events_.push_back({JobEvent::Kind::Progress, 0, bytes}); }
  int watch(std::vector<pollfd>&) const override { return events_.empty() ? kSoloWatchMilliseconds : 0; }
  std::vector<JobEvent> advance() override { return std::exchange(events_, {}); }
  void leave_to_child() override {}

 private:
  std::vector<JobNode> nodes_;
  std::vector<JobEvent> events_;
};

}  // namespace

std::unique_ptr<JobControl> make_solo_job(JobNode self) { return std::make_unique<SoloJob>(std::move(self)); }

}  // namespace braid::control
