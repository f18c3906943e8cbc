// The commands. Each takes the words after its name and returns the exit code; main() turns exceptions into messages
// and codes. Which command is called what is command_page.h's business.
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
  // In place of words, the question what the command takes: hears its options, and nothing else happens
  // (parse_words). Empty: the command is to run.
  std::function<void(const CLI::App&)> on_options = nullptr;
};

int simulate_command(const Words& words);
int plan_command(const Words& words);
int report_command(const Words& words);
int config_command(const Words& words);
int completion_command(const Words& words);
int man_command(const Words& words);
int token_command(const Words& words);
int prepare_command(const Words& words);    // of braid data
int inspect_command(const Words& words);    // of braid data
int train_bpe_command(const Words& words);  // of braid data
#ifdef BRAID_TORCH
int train_command(const Words& words);
int sample_command(const Words& words);
int evaluate_command(const Words& words);
int doctor_command(const Words& words);
int scaling_command(const Words& words);       // of braid bench
int ckpt_inspect_command(const Words& words);  // of braid ckpt, as those below
int ckpt_verify_command(const Words& words);
int ckpt_diff_command(const Words& words);
int ckpt_reshard_command(const Words& words);
int ckpt_from_hf_command(const Words& words);
int ckpt_to_hf_command(const Words& words);
#endif

}  // namespace braid::cli
