// The data of a run: which parts it measures.
#include "braid/train/run_data.h"

#include "braid/tokenize/prepare.h"
#include "tests/support/scratch_folder.h"

namespace braid::train::run_data_test {
namespace {

class SmallParts : public ScratchFolder {
 protected:
  // A folder of prepared data, of which about a fifth is held out.
  std::string prepared(const std::string& name, int num_lines) const {
    std::string lines;
    for (int i = 0; i < num_lines; ++i) lines += "{\"text\": \"a line of text, number " + std::to_string(i) + "\"}\n";
    write(path(name + ".jsonl"), lines);
    tokenize::PrepareRequest request;
    request.out = path(name);
    request.inputs = {path(name + ".jsonl")};
    request.validation_fraction = 0.2;
    PosixFileSystem files;
    tokenize::prepare(request, files, [](const tokenize::PrepareStatus&) {});
    return request.out;
  }
  static RunSpec spec(const std::vector<std::string>& paths, int context) {
    RunSpec spec;
    spec.model.context = context;
    spec.data.paths = paths;
    spec.data.weights.assign(paths.size(), 1);
    return spec;
  }
};

TEST_F(SmallParts, AreTrainedOnAndNotMeasured) {
  const RunSpec wanted = spec({prepared("large", 200), prepared("small", 12)}, 150);
  const RunData data(wanted.data);
  const data::Corpus corpus = data.corpus(data.resolved(wanted));
  EXPECT_EQ(corpus.train.size(), 2u);
  ASSERT_EQ(corpus.validation.size(), 1u);
  EXPECT_GT(corpus.validation[0].tokens->num_tokens(), 150);
  EXPECT_EQ(corpus.choices,
            (std::vector<std::string>{"validation without 1 of 2 parts of the data, which hold out less "
                                      "than one sample (151 tokens)"}));
  const RunSpec both = spec(wanted.data.paths, 20);
  EXPECT_EQ(data.corpus(data.resolved(both)).validation.size(), 2u);
}

TEST_F(SmallParts, AreRefusedWhereNothingElseIsMeasured) {
  const RunSpec wanted = spec({prepared("one", 12), prepared("two", 12)}, 200);
  const RunData data(wanted.data);
  EXPECT_THROW(data.corpus(data.resolved(wanted)), ConfigError);
}

std::string refusal(const RunSpec& wanted) {
  try {
    const RunData data(wanted.data);
    data.corpus(data.resolved(wanted));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_F(SmallParts, ShortValidationTextIsTheFaultOfTheFraction) {
  std::filesystem::create_directory(path("text"));
  write(path("text/a.txt"), std::string(200, 'x'));
  write(path("text/b.bin"), std::string("\0\1", 2));
  RunSpec wanted = spec({path("text")}, 20);
  wanted.data.weights.clear();
  const std::string left_out = cat(" (what is text; passed over in folders: 1 binary (", path("text/b.bin"), "))");
  EXPECT_EQ(refusal(wanted),
            cat("data.validation_fraction = 0.05: must be larger, or 0: the validation text has 11 tokens, and "
                "model.context (20) must be less",
                left_out, "; nearest valid is 0"));
  wanted.model.context = 500;
  wanted.data.validation_fraction = 0;
  EXPECT_EQ(refusal(wanted), cat("model.context = 500: must be less than the 201 tokens of the training text", left_out,
                                 "; nearest valid is 200"));
}

// One document is held out whole or not at all.
TEST_F(SmallParts, NothingHeldOutIsTheFaultOfTheFraction) {
  const std::string lines = path("lines.JSONL");
  write(lines, "{\"text\": \"" + std::string(500, 'x') + "\"}\n");
  RunSpec wanted = spec({lines}, 20);
  wanted.data.weights.clear();
  wanted.data.validation_fraction = 0.001;
  const RunData data(wanted.data);
  try {
    data.corpus(data.resolved(wanted));
    FAIL() << "a document was held out";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1u);
    EXPECT_EQ(error.problems()[0].key, "data.validation_fraction");
  }
  wanted.data.validation_fraction = 0;
  const data::Corpus corpus = data.corpus(data.resolved(wanted));
  EXPECT_EQ(corpus.num_documents, 1);
  EXPECT_EQ(corpus.train[0].tokens->num_tokens(), 501);
}

}  // namespace
}  // namespace braid::train::run_data_test
