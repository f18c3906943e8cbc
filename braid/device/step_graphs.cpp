// The states of StepGraphs, and LibTorch's CUDA graphs, called through the table.
#include "braid/device/step_graphs.h"

#include <exception>

#include "braid/base/errors.h"
#include "braid/device/cuda_services.h"

namespace braid::device {
namespace {

class CudaGraph final : public DeviceGraph {
 public:
  explicit CudaGraph(DeviceGraph* share)
      : services_(*cuda_table<CudaServices>()),
        share_(share ? static_cast<CudaGraph*>(share)->graph_ : nullptr),
        graph_(services_.make_graph()) {}
  ~CudaGraph() override { services_.free_graph(graph_); }
  CudaGraph(const CudaGraph&) = delete;

  void begin_capture() override { services_.begin_capture(graph_, share_); }
  void end_capture() override { services_.end_capture(graph_); }
  void abandon_capture() override { services_.abandon_capture(graph_); }
  void replay() override { services_.replay(graph_); }

 private:
  const CudaServices& services_;
  void* const share_;
  void* const graph_;
};

}  // namespace

std::unique_ptr<DeviceGraph> cuda_graph(DeviceGraph* share) {
  check(cuda_is_loaded(), "graphs are of a device that was loaded");
  return std::make_unique<CudaGraph>(share);
}

void StepGraphs::begin_step(uint64_t layout, int num_pieces, const std::function<void(int)>& record) {
  if (!failure_.empty()) return;
  if (layout != layout_ || (!graphs_.empty() && static_cast<int>(graphs_.size()) != num_pieces)) {
    graphs_.clear();
    layout_ = layout;
    num_warm_ = 0;
  }
  if (!graphs_.empty()) return;
  if (num_warm_ < kWarmUpSteps) {
    ++num_warm_;
    return;
  }
  capture(num_pieces, record);
}

void StepGraphs::capture(int num_pieces, const std::function<void(int)>& record) {
  std::vector<std::unique_ptr<DeviceGraph>> made;
  bool recording = false;
  try {
    for (int piece = 0; piece < num_pieces; ++piece) {
      made.push_back(make_(made.empty() ? nullptr : made.front().get()));
      made.back()->begin_capture();
      recording = true;
      record(piece);
      recording = false;  // end_capture() ends the capture even if it fails
      made.back()->end_capture();
    }
    graphs_ = std::move(made);
  } catch (const InternalError&) {
    throw;
  } catch (const std::exception& failed) {
    if (recording) made.back()->abandon_capture();
    failure_ = failed.what();
  }
}

}  // namespace braid::device
