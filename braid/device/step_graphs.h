// Records work that every step repeats as graphs, once, and replays the graphs. StepGraphs decides when to record, when
// to record again and when to give up. Its caller provides the work and the DeviceGraph that can record it.
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

// One recorded graph, of a device or a fake one.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  virtual void begin_capture() = 0;
  virtual void end_capture() = 0;
  virtual void abandon_capture() = 0;
  virtual void replay() = 0;
};
// Makes a graph that shares its working memory with `share`; null: with no other graph.
using MakeGraph = std::function<std::unique_ptr<DeviceGraph>(DeviceGraph* share)>;

// Makes a graph of the calling thread's stream. REQUIRES: load_cuda() has been called.
std::unique_ptr<DeviceGraph> cuda_graph(DeviceGraph* share);

class StepGraphs {
 public:
  static constexpr int kWarmUpSteps = 3;  // in the first steps, libraries choose kernels and allocate workspaces

  explicit StepGraphs(MakeGraph make) : make_(std::move(make)) {}

  // Called before a step whose work is determined by `layout`. If the layout differs from that of the last step, graphs
  // are dropped and the warm-up starts again. After the warm-up, record(piece) is called for each piece, and its work
  // is recorded without being run. If record() or the device throws, recording is given up for good and failure() gives
  // the reason; an InternalError is rethrown.
  void begin_step(uint64_t layout, int num_pieces, const std::function<void(int piece)>& record);
  // Returns true if this step replays graphs. Otherwise the caller runs the work itself.
  bool replays() const { return !graphs_.empty(); }
  void replay(int piece) { graphs_.at(static_cast<size_t>(piece))->replay(); }
  // Returns the reason why recording was given up; empty if it was not.
  const std::string& failure() const { return failure_; }

 private:
  void capture(int num_pieces, const std::function<void(int)>& record);

  MakeGraph make_;
  uint64_t layout_ = 0;
  int num_warm_ = 0;  // number of warm-up steps run with this layout
  std::vector<std::unique_ptr<DeviceGraph>> graphs_;
  std::string failure_;
};

}  // namespace braid::device
