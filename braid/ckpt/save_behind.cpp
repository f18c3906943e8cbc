// One thread at a time, joined before the next begins.
#include "braid/ckpt/save_behind.h"

#include <system_error>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::ckpt {
namespace {

struct GivenUp {};

}  // namespace

SaveBehind::SaveBehind(SavePlan plan, Communicator& world, FileSystem& files)
    : plan_(std::move(plan)), world_(world), files_(files), snapshot_(plan_.shard) {}

SaveBehind::~SaveBehind() {
  given_up_ = true;
  if (thread_.joinable()) thread_.join();
}

// Where no thread can be started, the step waits for the work.
template <class Work>
void SaveBehind::run(const Work& work) {
  const auto to_its_end = [this, work] {
    try {
      work();
    } catch (const GivenUp&) {
    } catch (...) {
      exception_ = std::current_exception();
    }
    busy_.store(false, std::memory_order_release);
  };
  busy_.store(true, std::memory_order_release);
  try {
    thread_ = std::thread(to_its_end);
  } catch (const std::system_error&) {
    to_its_end();
  }
}

void SaveBehind::join() {
  if (thread_.joinable()) thread_.join();
  if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
}

// Returns the snapshot's rows until the save is cancelled.
BoxRows SaveBehind::rows() {
  return [this, of_snapshot = snapshot_.rows()](const PlannedBox& planned, int64_t begin, int64_t end) {
    if (given_up_) throw GivenUp();
    return of_snapshot(planned, begin, end);
  };
}

void SaveBehind::start(const std::string& directory, const CheckpointContent& content) {
  check(!under_way(), "one save at a time is under way");
  world_.queue().drain();  // the values are read on the host
  snapshot_.take(content.tensors);
  directory_ = directory;
  info_ = content.info;
  tokenizer_files_ = content.tokenizer_files;
  save_ = {};
  phase_ = Phase::Opening;
  if (world_.rank() == 0) run([this] { fault_ = opened(directory_, plan_, files_, save_); });
}

bool SaveBehind::advance() {
  check(under_way(), "a save is under way");
  join();
  const std::string fault = std::exchange(fault_, {});
  switch (std::exchange(phase_, Phase::None)) {  // whatever throws ends the save
    case Phase::Opening:
      agree_on_folder(fault, save_, plan_.device, world_);
      write();
      return false;
    case Phase::Writing:
      publish();
      return false;
    default:
      agree_on_publishing(fault, plan_.device, world_);
      return true;
  }
}

void SaveBehind::write() {
  phase_ = Phase::Writing;
  run([this] {
    const std::string weight = snapshot_.weight_not_finite();
    report_ = weight.empty() ? written(save_.folder, plan_, rows(), files_)
                             : ShardReport{{}, directory_, cat(weight, " is not finite; nothing is saved")};
  });
}

void SaveBehind::publish() {
  manifest_ = {gather_reports(save_, std::exchange(report_, {}), plan_.device, world_), info_};
  phase_ = Phase::Publishing;
  if (world_.rank() != 0) return;
  run([this] { fault_ = published(std::exchange(save_, {}), std::move(manifest_), tokenizer_files_); });
}

void SaveBehind::finish() {
  while (under_way() && !advance()) {
  }
}

}  // namespace braid::ckpt
