// The output of a training run that has ended: timelines, closing lines, a sample.
#pragma once

#include "braid/cli/torch/run_printer.h"
#include "braid/train/run.h"

namespace braid::cli {

// Draws the first pipeline's measured timeline above the same step without waiting. Writes both timelines of all ranks
// as a trace, and prints the closing lines.
void show_end(const train::RunEnd& end, RunPrinter& printer);

// Generates the text that train.sample_prompt asks for. Prints it and writes it to the run's folder.
void show_sample(const train::RunEnd& end);

}  // namespace braid::cli
