// Work that every step repeats, recorded once and replayed. It decides when to record, when to record anew and when to
// give up; it knows neither the work nor how a device records it.
//
//   warm-up --(warm-up steps of one layout)--> record --> replay, replay, ..
//      ^                                         | fails           |
//      |                                         v                 |
//      |                                        off                |
//      +------------------- another layout ------------------------+
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace braid::device {

// One recording. A device's, or a fake.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  virtual void begin_capture() = 0;
  virtual void end_capture() = 0;
  virtual void abandon_capture() = 0;
  virtual void replay() = 0;
};
// Makes a graph that shares its working memory with `share`, or with none.
using MakeGraph = std::function<std::unique_ptr<DeviceGraph>(DeviceGraph* share)>;

// Makes a graph of the calling thread's stream on the device. REQUIRES: load_cuda() has been called.
std::unique_ptr<DeviceGraph> cuda_graph(DeviceGraph* share);

class StepGraphs {
 public:
  static constexpr int kWarmUpSteps = 3;  // libraries choose kernels and take their work space in the first ones

  explicit StepGraphs(MakeGraph make) : make_(std::move(make)) {}

  // Before a step whose work is fixed by `layout`: graphs of another layout are dropped and warm-up begins again. Once
  // it is over, record(piece) is called for each piece, with nothing run; what it throws ends all attempts.
  void begin_step(uint64_t layout, int num_pieces, const std::function<void(int piece)>& record);
  // Returns true if this step replays; otherwise its work is to be run as it is.
  bool replays() const { return !graphs_.empty(); }
  void replay(int piece) { graphs_.at(static_cast<size_t>(piece))->replay(); }
  // Why recording was given up; empty while it was not.
  const std::string& failure() const { return failure_; }

 private:
  void capture(int num_pieces, const std::function<void(int)>& record);

  MakeGraph make_;
  uint64_t layout_ = 0;
  int num_warm_ = 0;  // steps of this layout that ran unrecorded
  std::vector<std::unique_ptr<DeviceGraph>> graphs_;
  std::string failure_;
};

}  // namespace braid::device
