// The launcher of ranks that are threads of this process.
#pragma once

#include "braid/launch/launcher.h"

namespace braid {

class ThreadLauncher final : public Launcher {
 public:
  std::vector<std::string> run(int num_ranks, const Body& body, const LaunchOptions& options) const override;
};

}  // namespace braid
