// Rows of published tables: the run that was measured, and what was measured of it. Where a source is silent the row
// assumes what docs/published_rows.md says.
#pragma once

#include <string>
#include <vector>

#include "braid/plan/formula_set.h"
#include "braid/spec/run_spec.h"

namespace braid {

struct PublishedRow {
  std::string source;  // "Narayanan et al. 2021, table 1"
  std::string name;    // of the row
  RunSpec run;
  int devices = 0;
  double seconds = 0;    // of a step, as measured
  double memory_gb = 0;  // of the fullest device, in 2^30 bytes; 0: not printed
  bool fitted = false;   // the preset's constants were chosen with it in view
  plan::FormulaSet formulas = plan::FormulaSet::Megatron;
  std::string cluster = "dgx-a100-80gb";
};

// On DGX A100 nodes with 80 GB devices, by Megatron-LM.
std::vector<PublishedRow> ptdp_rows();         // Narayanan et al. 2021 (arXiv 2104.04473), table 1
std::vector<PublishedRow> korthikanti_rows();  // Korthikanti et al. 2022 (arXiv 2205.05198), tables 3 and 5
std::vector<PublishedRow> zero_bubble_rows();  // Qi et al. 2023 (arXiv 2401.10241), tables 3 and 4
// On H100s: Grattafiori et al. 2024 (arXiv 2407.21783), table 4, first row; torchtitan's benchmarks of December 2024.
// Rows measured with float8 products are predicted in bfloat16.
std::vector<PublishedRow> h100_rows();

}  // namespace braid
