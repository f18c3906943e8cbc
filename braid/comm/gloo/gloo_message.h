// One side of a message: a send or a receive of a batch.
#pragma once

#include <ATen/core/Tensor.h>

#include "braid/comm/communicator.h"
#include "braid/comm/gloo/gloo_operation.h"
#include "braid/comm/gloo/gloo_post.h"

namespace braid {

class GlooMessage final : public GlooOperation,
                          public std::enable_shared_from_this<GlooMessage>,
                          private GlooParcel::Owner {
 public:
  // `news` outlives this.
  GlooMessage(std::shared_ptr<const GlooGroup> group, const P2p& transfer, GlooNews& news);

  // The rank has arrived at it.
  void start(GlooPost& post);

  std::string label() const override;
  GlooStall stall() const override;

 private:
  void parcel_done(const GlooParcel& parcel) override;

  const std::shared_ptr<const GlooGroup> group_;
  const int peer_;  // in the group
  GlooNews& news_;
  at::Tensor tensor_;
  GlooParcel parcel_;
  std::atomic<const GlooPost*> post_{nullptr};  // since it has been started
};

}  // namespace braid
