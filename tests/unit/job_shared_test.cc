// How resolve() treats the field "shared": dtypes, places in the memory, what is too large.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "formats/dtype.h"
#include "job/resolve.h"
#include "job_folder.h"

namespace mprun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string dtype_of(std::string_view text) {
  const auto dtype = find_dtype(text);
  return dtype ? dtype->text + " " + std::to_string(dtype->bytes) : "none";
}

TEST(JobDtype, NamesAndCodes) {
  for (const char* text : {"float32", "f4", "<f4", "=f4"}) EXPECT_EQ(dtype_of(text), "<f4 4") << text;
  EXPECT_EQ(dtype_of(">f8"), ">f8 8");
  EXPECT_EQ(dtype_of(">i1"), "|i1 1");
  EXPECT_EQ(dtype_of("bool"), "|b1 1");
  EXPECT_EQ(dtype_of("complex128"), "<c16 16");
  EXPECT_EQ(dtype_of("bfloat16"), "bfloat16 2");
  for (const char* text : {"", "<", "f", "f3", "<float32", "object", "|O", "<U8", "<M8[s]", "V4", "float128", "F4"}) {
    EXPECT_EQ(dtype_of(text), "none") << text;
  }
  for (const std::string& name : dtype_names()) EXPECT_NE(dtype_of(name), "none") << name;
}

class JobShared : public JobFolder {
 protected:
  JobShared() { around_.memory_source = "a test"; }

  void write_npy(const std::string& name, const std::string& header, std::size_t data) const {
    std::string file = std::string("\x93NUMPY\x01") + '\0' + static_cast<char>(header.size()) + '\0';
    write(name, file + header + std::string(data, '\0'));
  }
  [[nodiscard]] Result<Resolved> resolve_shared(const std::string& shared) const {
    Result<Document> document = parse_document(
        "job.json", directory_, R"({"script": "job.py:run", "inputs": {"range": 1}, "shared": {)" + shared + "}}");
    EXPECT_TRUE(document);
    return resolve({default_layer(), *document}, around_);
  }
  [[nodiscard]] std::string refusal(const std::string& shared) const {
    const Result<Resolved> resolved = resolve_shared(shared);
    return resolved ? "accepted" : resolved.error().message;
  }
};

TEST_F(JobShared, ThereIsNone) { EXPECT_THAT(resolve_shared("")->spec.shared, IsEmpty()); }

TEST_F(JobShared, EveryTensorBeginsAtAPage) {
  write_npy("a.npy", "{'descr': '>i2', 'fortran_order': True, 'shape': (3, 2049), }\n", 12294);
  const auto resolved = resolve_shared(
      R"("c": {"shape": [], "dtype": "bool"}, "b": {"shape": [0, 7], "dtype": "f8"}, "a": {"npy": "a.npy"})");
  ASSERT_TRUE(resolved) << resolved.error().message;
  const auto& shared = resolved->spec.shared;
  ASSERT_EQ(shared.size(), 3U);
  EXPECT_EQ(shared[0].name + shared[1].name + shared[2].name, "abc");
  EXPECT_EQ(shared[0].dtype, ">i2");
  EXPECT_TRUE(shared[0].fortran_order);
  EXPECT_THAT(shared[0].shape, ElementsAre(3, 2049));
  EXPECT_EQ(shared[0].bytes, 12294U);
  EXPECT_EQ(shared[0].path, directory_ + "/a.npy");
  EXPECT_EQ(shared[0].path_offset, std::filesystem::file_size(shared[0].path) - 12294);
  EXPECT_EQ(shared[1].offset, 16384U);
  EXPECT_EQ(shared[1].bytes, 0U);
  EXPECT_EQ(shared[2].offset, 16384U);
  EXPECT_EQ(shared[2].bytes, 1U);
  EXPECT_EQ(resolved->merged["shared"]["a"]["npy"], directory_ + "/a.npy");
}

TEST_F(JobShared, WhatTheMachineCannotHold) {
  around_.memory_bytes = 8192;
  const std::string two_pages = R"("w": {"shape": [1025], "dtype": "f4"})";
  EXPECT_EQ(refusal(two_pages), "accepted");
  around_.memory_bytes = 8191;
  EXPECT_THAT(refusal(two_pages), HasSubstr("take 8.0 KiB of memory (8192 bytes), this one 4.0 KiB; there are 8.0 KiB "
                                            "(a test)"));
}

TEST_F(JobShared, SizesThatOverflow) {
  const auto of_shape = [this](const std::string& shape) {
    return refusal(R"("w": {"dtype": "f4", "shape": )" + shape + "}");
  };
  EXPECT_THAT(of_shape("[4503599627370496, 512]"), HasSubstr("2^63 bytes or more"));
  EXPECT_THAT(of_shape("[9007199254740991, 9007199254740991, 9007199254740991]"), HasSubstr("2^63 bytes or more"));
  EXPECT_THAT(of_shape("[0, 9007199254740991, 9007199254740991]"), HasSubstr("2^63 bytes or more"));
  EXPECT_THAT(refusal(R"("v": {"dtype": "i1", "shape": [4503599627370496, 1025]},
                         "w": {"dtype": "i1", "shape": [4503599627370496, 1025]})"),
              HasSubstr("the shared tensors have 2^63 bytes or more"));
}

}  // namespace
}  // namespace mprun
