// The commands. Each takes the words after its name and returns the exit code. main() turns exceptions into messages
// and codes. The names of commands are in command_page.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace braid::cli {

struct Words {
  std::vector<std::string> list;
  // If set, the command does not run: parse_words() calls this with the command's options. Empty: the command runs.
  std::function<void(const CLI::App&)> on_options = nullptr;
};

int simulate_command(const Words& words);
int model_command(const Words& words);
int plan_command(const Words& words);
int report_command(const Words& words);
int config_command(const Words& words);
int completion_command(const Words& words);
int man_command(const Words& words);
int token_command(const Words& words);
int prepare_command(const Words& words);          // braid data prepare
int inspect_command(const Words& words);          // braid data inspect
int train_bpe_command(const Words& words);        // braid data train-bpe
int train_wordpiece_command(const Words& words);  // braid data train-wordpiece
#ifdef BRAID_TORCH
int train_command(const Words& words);
int sample_command(const Words& words);
int evaluate_command(const Words& words);
int verify_command(const Words& words);
int doctor_command(const Words& words);
int scaling_command(const Words& words);       // braid bench scaling
int ckpt_inspect_command(const Words& words);  // in the group braid ckpt, as are those below
int ckpt_verify_command(const Words& words);
int ckpt_diff_command(const Words& words);
int ckpt_reshard_command(const Words& words);
int ckpt_from_hf_command(const Words& words);
int ckpt_to_hf_command(const Words& words);
#endif

}  // namespace braid::cli
