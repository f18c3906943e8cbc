// A folder of a test's own with eight small texts in text/, enough to train a tiny model on and hold some out.
#pragma once

#include "tests/support/scratch_folder.h"

namespace braid {

class TextFolder : public ScratchFolder {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(path("text"));
    for (int i = 0; i < 8; ++i) {
      std::string text;
      for (int line = 0; line < 20; ++line) text += cat(i, " quick brown foxes\n");
      write(path(cat("text/", i, ".txt")), text);
    }
  }
};

}  // namespace braid
