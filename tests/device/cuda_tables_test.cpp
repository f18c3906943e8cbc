// Loading with a fake library, and every way it is refused.
#include "braid/device/cuda_tables.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "braid/base/errors.h"
#include "braid/device/cuda_services.h"

namespace braid::device::cuda_tables_test {
namespace {

struct SomeTable {
  CudaTable header;
  void (*first)();
  void (*second)();
};

void nothing() {}

std::string refusal(const CudaPlaces& places) {
  try {
    load_cuda(places);
  } catch (const ConfigError& refused) {
    EXPECT_EQ(refused.problems().size(), 1u);
    EXPECT_EQ(refused.problems()[0].key, "train.device");
    EXPECT_EQ(refused.problems()[0].nearest, "\"cpu\"");
    return refused.what();
  }
  return "not refused";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

template <class Call>
Call fake(const char* name) {
  return reinterpret_cast<Call>(LoadedLibrary(BRAID_FAKE_CUDA, Symbols::Private).symbol(name));
}

TEST(CudaTable, IsJudgedBeforeItIsUsed) {
  SomeTable table{{kCudaTableVersion, sizeof(SomeTable)}, nothing, nothing};
  EXPECT_EQ(table_problem(&table.header, sizeof table), "");
  EXPECT_NE(table_problem(nullptr, sizeof table), "");
  EXPECT_TRUE(has(table_problem(&table.header, sizeof table + 8), "bytes"));
  table.second = nullptr;
  EXPECT_EQ(table_problem(&table.header, sizeof table), "entry 1 of its table is empty");
  table = {{kCudaTableVersion + 1, sizeof table}, nothing, nothing};
  EXPECT_TRUE(has(table_problem(&table.header, sizeof table), "version"));
}

TEST(CudaPlaces, AreBesideTheProgramAndLibTorch) {
  EXPECT_EQ(cuda_places().torch_library, "libtorch_cuda.so") << "this test is not linked to LibTorch";
  EXPECT_EQ(cuda_places().braid_library, folder_of_program() + "/libbraid_cuda.so");
}

// In one test, since a process loads once.
TEST(LoadCuda, NamesWhatIsMissingThenLoadsOnce) {
  EXPECT_FALSE(cuda_is_loaded());
  EXPECT_EQ(cuda_table<CudaServices>(), nullptr);
  EXPECT_TRUE(has(refusal({"/none/libtorch_cuda.so", BRAID_FAKE_CUDA}), "/none/libtorch_cuda.so"));
  EXPECT_TRUE(has(refusal({BRAID_FAKE_CUDA, "/none/libbraid_cuda.so"}), "/none/libbraid_cuda.so"));
  EXPECT_TRUE(has(refusal({BRAID_FAKE_CUDA, "libc.so.6"}), "braid_cuda_table"));

  fake<void (*)(int64_t)>("set_fake_version")(kCudaTableVersion - 1);
  EXPECT_TRUE(has(refusal({BRAID_FAKE_CUDA, BRAID_FAKE_CUDA}), "version"));
  fake<void (*)(int64_t)>("set_fake_version")(kCudaTableVersion);
  fake<void (*)(const char*)>("set_fake_problem")("no driver");
  EXPECT_TRUE(has(refusal({BRAID_FAKE_CUDA, BRAID_FAKE_CUDA}), "needs a CUDA device: no driver"));
  fake<void (*)(const char*)>("set_fake_problem")("");
  EXPECT_FALSE(cuda_is_loaded());

  load_cuda({BRAID_FAKE_CUDA, BRAID_FAKE_CUDA});
  ASSERT_TRUE(cuda_is_loaded());
  load_cuda({"/none/libtorch_cuda.so", "/none/libbraid_cuda.so"});
  EXPECT_EQ(cuda_table<CudaServices>()->stream(2), reinterpret_cast<void*>(102));
  EXPECT_THROW(find_cuda_table("nn", 64), InternalError) << "a table that the library does not have";
}

}  // namespace
}  // namespace braid::device::cuda_tables_test
