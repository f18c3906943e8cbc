// The table of commands. Each takes the words after its name and returns the exit code; main() turns exceptions into
// messages and codes.
#pragma once

#include <string>
#include <vector>

namespace braid {

using Words = std::vector<std::string>;

int simulate_command(const Words& words);
int report_command(const Words& words);
int config_command(const Words& words);
int data_command(const Words& words);
int prepare_command(const Words& words);    // of braid data
int inspect_command(const Words& words);    // of braid data
int train_bpe_command(const Words& words);  // of braid data
#ifdef BRAID_TORCH
int train_command(const Words& words);
int sample_command(const Words& words);
int bench_command(const Words& words);
#endif

}  // namespace braid
