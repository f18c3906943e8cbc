// Writes of tensors to a disk behind the computation: the memory of one write is held while the next one is computed.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>

#include "braid/param/disk_tensors.h"

namespace braid::param {

class WriteBehind {
 public:
  // Called with memory that was written.
  using Written = std::function<void(const at::Tensor& memory)>;

  // REQUIRES: `disk` outlives this.
  WriteBehind(DiskTensors& disk, Written written) : disk_(disk), written_(std::move(written)) {}
  ~WriteBehind() { disk_.disk().drain(); }
  WriteBehind(const WriteBehind&) = delete;

  // Starts to write `part`, a view of `memory`, to `flat`, after the write before has ended. Nobody changes `memory`
  // until written() is called with it. Throws RunError if the disk fails. REQUIRES: as of DiskTensors::write().
  void write(const at::Tensor& flat, const at::Tensor& part, at::Tensor memory);
  // Waits for the last write.
  void finish();

 private:
  struct Write {
    disk::Ticket ticket;
    at::Tensor memory;
  };
  DiskTensors& disk_;
  Written written_;
  std::optional<Write> last_;
};

}  // namespace braid::param
