// The preparation of data. It reads and encodes documents a batch at a time. Token files end with whole documents, so
// an interruption costs at most one file.
#include "braid/tokenize/prepare.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <future>
#include <iterator>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/tokenize/document_reader.h"
#include "braid/tokenize/prepare_plan.h"
#include "braid/tokenize/text_corpus.h"
#include "braid/tokenize/tokenizer_identity.h"

namespace braid::tokenize {
namespace {

constexpr size_t kBatchBytes = 4 << 20, kBatchDocuments = 4096;

struct EncodedDocument {
  std::vector<uint32_t> train, validation;  // each ends with end-of-text or is empty
  int64_t next_file = 0, next_offset = 0, bad_lines = 0;
};

EncodedDocument encoded(const ReadDocument& document, const Tokenizer& tokenizer, double fraction) {
  EncodedDocument out{{}, {}, document.next_file, document.next_offset, document.bad_lines};
  auto& tokens = document.side == Side::Validation ? out.validation : out.train;
  tokenizer.encode_append(document.text, tokens);
  const auto end_of_text = static_cast<uint32_t>(tokenizer.end_of_text());
  if (document.side == Side::SplitEnd) {
    const auto kept = tokens.end() - held_out_end(static_cast<int64_t>(tokens.size()), fraction);
    out.validation.assign(kept, tokens.end());
    tokens.erase(kept, tokens.end());
    if (!out.validation.empty()) out.validation.push_back(end_of_text);
  }
  if (!tokens.empty()) tokens.push_back(end_of_text);
  return out;
}

// Returns the encoded documents in their order. The order does not depend on the threads.
std::vector<EncodedDocument> encoded(const std::vector<ReadDocument>& batch, const Tokenizer& tokenizer,
                                     const PrepareRequest& request) {
  std::vector<EncodedDocument> out(batch.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < batch.size(); i = next++) {
      out[i] = encoded(batch[i], tokenizer, request.validation_fraction);
    }
  };
  std::vector<std::future<void>> helpers;
  const auto num_helpers = std::min<size_t>(static_cast<size_t>(request.threads), batch.size()) - 1;
  for (size_t i = 0; i < num_helpers; ++i) helpers.push_back(std::async(std::launch::async, work));
  work();
  for (auto& helper : helpers) helper.get();  // rethrows an exception of the thread
  return out;
}

// The two token files of a part. Each is created with its first document.
class PartWriter {
 public:
  PartWriter(FileSystem& files, std::string folder, const data::TokenizerMark& mark)
      : files_(files), folder_(std::move(folder)), mark_(mark) {}

  void add(const EncodedDocument& document, data::PreparedPart& names) {
    add(train_, names.train_name, document.train);
    add(validation_, names.validation_name, document.validation);
  }
  int64_t num_train_tokens() const { return train_ ? train_->num_tokens() : 0; }
  bool empty() const { return !train_ && !validation_; }

  // Publishes both files under their final names, durably.
  void finish(data::PreparedPart& part) {
    if (train_) part.train = published(*train_, part.train_name);
    if (validation_) part.validation = published(*validation_, part.validation_name);
    if (!train_) part.train_name.clear();
    if (!validation_) part.validation_name.clear();
    files_.sync_directory(folder_);
  }

 private:
  void add(std::unique_ptr<data::TokenFileWriter>& writer, const std::string& name,
           const std::vector<uint32_t>& tokens) {
    if (tokens.empty()) return;
    if (!writer) {
      writer =
          std::make_unique<data::TokenFileWriter>(files_, folder_ + "/" + name + ".tmp", mark_.vocab, mark_.identity);
    }
    writer->add_document(tokens);
  }
  data::TokenFileInfo published(data::TokenFileWriter& writer, const std::string& name) {
    const auto info = writer.finish();
    files_.replace(folder_ + "/" + name + ".tmp", folder_ + "/" + name);
    return info;
  }

  FileSystem& files_;
  std::string folder_;
  const data::TokenizerMark& mark_;
  std::unique_ptr<data::TokenFileWriter> train_, validation_;
};

std::string part_name(size_t source, const char* side, size_t part) {
  char number[24];
  std::snprintf(number, sizeof number, "%05zu", part);
  return cat("source", source, "-", side, "-", number, ".tokens");
}

class Preparation {
 public:
  Preparation(const PrepareRequest& request, FileSystem& files, const std::function<void(const PrepareStatus&)>& report)
      : request_(request), files_(files), report_(report), plan_(prepare_plan(request)) {}

  PrepareResult run() {
    begin();
    const PrepareStatus first = status_;
    const bool was_complete = files_.exists(in_out("manifest.json"));
    report_(status_);
    auto& cursor = progress_.cursor;
    while (cursor.source < static_cast<int64_t>(plan_.files.size())) run_source(static_cast<size_t>(cursor.source));
    if (!was_complete) {
      InputRecord record = plan_.record;
      add_digests(record);
      data::replace_file(files_, in_out(kInputRecordName), input_record_json(record));
      data::replace_file(files_, in_out("manifest.json"), data::manifest_json(progress_.manifest));
    }
    files_.remove_all(in_out("progress.json"));
    files_.sync_directory(request_.out);
    return {progress_.manifest, first, status_, was_complete, plan_.passed_over};
  }

 private:
  std::string in_out(const std::string& name) const { return request_.out + "/" + name; }

  void begin() {
    if (auto earlier = earlier_progress(request_, plan_)) {
      progress_ = std::move(*earlier);
    } else {
      files_.create_directories(request_.out);
      progress_ = {plan_.manifest, {}};
      data::replace_file(files_, in_out(kInputRecordName), input_record_json(plan_.record));
      save_progress();
    }
    copy_tokenizer();
    count_what_is_done();
  }

  void save_progress() { data::replace_file(files_, in_out("progress.json"), data::progress_json(progress_)); }

  // Copies the tokenizer, so that the folder alone is enough to decode its tokens.
  void copy_tokenizer() {
    const auto copy = tokenizer_copy(request_.tokenizer);
    if (copy.empty() || files_.exists(in_out("manifest.json"))) return;
    files_.create_directories(in_out("tokenizer"));
    for (const auto& [name, bytes] : copy) data::replace_file(files_, in_out("tokenizer/") + name, bytes);
  }

  void count_what_is_done() {
    for (size_t s = 0; s < plan_.files.size(); ++s) {
      status_.total_bytes += plan_.manifest.sources[s].text_bytes;
      for (const auto& part : progress_.manifest.sources[s].parts) {
        status_.num_tokens += part.train.num_tokens + part.validation.num_tokens;
      }
    }
    status_.num_documents = progress_.manifest.num_documents();
    status_.text_bytes = bytes_before(progress_.cursor);
  }

  int64_t bytes_before(const data::PrepareCursor& cursor) const {
    int64_t bytes = cursor.offset;
    for (size_t s = 0; s < plan_.files.size(); ++s) {
      for (size_t f = 0; f < plan_.files[s].size(); ++f) {
        const auto source = static_cast<int64_t>(s), file = static_cast<int64_t>(f);
        if (source < cursor.source || (source == cursor.source && file < cursor.file)) bytes += plan_.files[s][f].bytes;
      }
    }
    return bytes;
  }

  void run_source(size_t source) {
    DocumentReader reader(plan_.files[source], {request_.text_field, request_.validation_fraction, request_.bad_lines});
    reader.seek(progress_.cursor.file, progress_.cursor.offset);
    bad_lines_before_ = progress_.manifest.sources[source].bad_lines;
    begin_part(source);
    for (auto batch = read_batch(reader); !batch.empty(); batch = read_batch(reader)) {
      for (const auto& document : encoded(batch, *plan_.tokenizer, request_)) add(document, source);
      status_.text_bytes = bytes_before(progress_.cursor);
      report_(status_);
    }
    progress_.manifest.sources[source].bad_lines = bad_lines_before_ + reader.num_bad_lines();
    if (!writer_->empty()) finish_part(source);
    progress_.cursor = {static_cast<int64_t>(source) + 1};
    status_.text_bytes = bytes_before(progress_.cursor);
    save_progress();
  }

  std::vector<ReadDocument> read_batch(DocumentReader& reader) const {
    std::vector<ReadDocument> batch;
    for (size_t bytes = 0; bytes < kBatchBytes && batch.size() < kBatchDocuments;) {
      auto document = reader.next();
      if (!document) break;
      bytes += document->text.size();
      batch.push_back(std::move(*document));
    }
    return batch;
  }

  void begin_part(size_t source) {
    const size_t number = progress_.manifest.sources[source].parts.size();
    part_ = {part_name(source, "train", number), part_name(source, "validation", number), {}, {}};
    writer_ = std::make_unique<PartWriter>(files_, request_.out, plan_.manifest.tokenizer);
  }

  void finish_part(size_t source) {
    writer_->finish(part_);
    progress_.manifest.sources[source].parts.push_back(part_);
  }

  void add(const EncodedDocument& document, size_t source) {
    writer_->add(document, part_);
    status_.num_tokens += static_cast<int64_t>(document.train.size() + document.validation.size());
    ++status_.num_documents;
    ++progress_.manifest.sources[source].num_documents;
    progress_.manifest.sources[source].bad_lines = bad_lines_before_ + document.bad_lines;
    progress_.cursor = {static_cast<int64_t>(source), document.next_file, document.next_offset};
    if (writer_->num_train_tokens() < request_.shard_tokens) return;
    finish_part(source);
    save_progress();
    begin_part(source);
  }

  const PrepareRequest& request_;
  FileSystem& files_;
  const std::function<void(const PrepareStatus&)>& report_;
  const PreparePlan plan_;
  data::PrepareProgress progress_;
  PrepareStatus status_;
  int64_t bad_lines_before_ = 0;  // bad lines of this source before this call resumed it
  data::PreparedPart part_;       // part being written
  std::unique_ptr<PartWriter> writer_;
};

}  // namespace

PrepareResult prepare(const PrepareRequest& request, FileSystem& files,
                      const std::function<void(const PrepareStatus&)>& report) {
  return Preparation(request, files, report).run();
}

}  // namespace braid::tokenize
