// braid_cuda_check: what scripts/check_cuda asks of a device, beside training runs. One command per process; each
// prints lines of JSON.
//
//   built                                          what it was built with
//   device                                         name, capability and memory; exit code 2 where none can be used
//   products                                       floating-point operations per second of matrix products
//   kernels [--device cpu|cuda] [--sizes small|full]   every fused kernel against float64; exit code 1 where one is off
//   steps FILE KEY=VALUE ...                       a training step for each line "step" on standard input
#include <torch/headeronly/version.h>

#include <algorithm>
#include <iostream>

#include "braid/base/errors.h"
#include "braid/base/process_start.h"
#include "braid/base/text.h"
#include "braid/device/cuda_services.h"
#include "braid/report/metrics_file.h"
#include "braid/train/compute_device.h"
#include "tools/check_cuda/commands.h"
#include "tools/check_cuda/verdict.h"

namespace braid::cuda_check {
namespace {

using Words = std::vector<std::string>;

// In one piece, so that it can be read off the file of a program that does not start.
constexpr char kBuilt[] =
    "built with: libtorch=" TORCH_VERSION " cuda=" BRAID_CUDA_VERSION " architectures=" BRAID_CUDA_ARCHITECTURES ";";

int print_built() {
  std::cout << kBuilt << std::endl;
  return 0;
}

std::string version_text(int version) { return cat(version / 1000, ".", version % 1000 / 10); }

int print_device() {
  enter("cuda");
  device::CudaDeviceFacts facts;
  device::cuda_table<device::CudaServices>()->facts(0, &facts);
  report::MetricsLine line;
  line.add("name", std::string_view(facts.name));
  line.add("capability", std::string_view(cat(facts.major, ".", facts.minor)));
  line.add("processors", facts.processors).add("bytes", facts.bytes);
  line.add("driver", std::string_view(version_text(facts.driver)));
  line.add("runtime", std::string_view(version_text(facts.runtime)));
  std::cout << line.text() << std::endl;
  return 0;
}

bool judge(const KernelCheck& check, const Setting& setting) {
  Verdict verdict;
  report::MetricsLine line;
  line.add("kernel", std::string_view(check.name)).add("dtype", std::string_view(c10::toString(setting.dtype)));
  std::string failure;
  try {
    check.run(setting, verdict);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  if (failure.empty() && verdict.num_compared() == 0) return true;  // there is no such kernel for this type or device
  const bool holds = failure.empty() && verdict.worst() <= 1;
  line.add("compared", verdict.num_compared()).add("ok", holds);
  line.add("worst", std::min(verdict.worst(), 1e30)).add("where", std::string_view(verdict.where()));
  if (!failure.empty()) line.add("failure", std::string_view(failure));
  std::cout << line.text() << std::endl;
  return holds;
}

int judge_kernels(const Words& words) {
  const auto option = [&](const char* name, const char* otherwise) {
    const auto found = std::find(words.begin(), words.end(), name);
    return found == words.end() || found + 1 == words.end() ? std::string(otherwise) : *(found + 1);
  };
  const at::Device device = enter(option("--device", "cuda"));
  const Sizes sizes = option("--sizes", "small") == "full" ? Sizes::Full : Sizes::Small;
  bool all_hold = true;
  for (const KernelCheck& check : kernel_checks()) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
      all_hold = judge(check, {device, dtype, sizes}) && all_hold;
    }
  }
  return all_hold ? 0 : 1;
}

int run(const Words& words) {
  const std::string command = words.empty() ? "" : words[0];
  const Words rest(words.begin() + (words.empty() ? 0 : 1), words.end());
  if (command == "built") return print_built();
  if (command == "device") return print_device();
  if (command == "products") return products();
  if (command == "kernels") return judge_kernels(rest);
  if (command == "steps" && !rest.empty()) return steps(rest[0], {rest.begin() + 1, rest.end()});
  std::cerr << "usage: braid_cuda_check built | device | products | kernels [--device cpu|cuda] [--sizes small|full] | "
               "steps FILE KEY=VALUE ...\n";
  return 2;
}

}  // namespace

at::Device enter(const std::string& device) {
  RunSpec spec;
  spec.train.device = value_of<DeviceKind>(device).value();
  train::open_device(spec);
  train::enter_device(spec);
  return train::compute_device(spec);
}

}  // namespace braid::cuda_check

int main(int argc, char** argv) {
  try {
    braid::prepare_process();
    return braid::cuda_check::run({argv + 1, argv + argc});
  } catch (const braid::ConfigError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "braid_cuda_check: " << error.what() << "\n";
    return 3;
  }
}
