// How resolve() treats arrays as inputs: headers of .npy and .safetensors files, valid and invalid, names and `call`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "formats/npy_reader.h"
#include "formats/safetensors_reader.h"
#include "job/array_file.h"
#include "job/resolve.h"
#include "job_folder.h"

namespace mprun {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// The bytes of a .npy file with that header.
std::string npy(const std::string& dictionary, std::size_t data_bytes, char version = 1) {
  std::string header = dictionary + "\n";
  std::string file = std::string("\x93NUMPY") + version + '\0';
  file += static_cast<char>(header.size() & 0xFFU);
  file += static_cast<char>(header.size() >> 8U);
  if (version > 1) file += std::string(2, '\0');
  return file + header + std::string(data_bytes, '\0');
}

std::string dictionary(const std::string& descr, const std::string& shape, const std::string& order = "False") {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

/// The bytes of a .safetensors file with that header.
std::string safetensors(const std::string& header, std::size_t data_bytes) {
  std::string file;
  for (unsigned i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> 8U * i & 0xFFU);
  return file + header + std::string(data_bytes, '\0');
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

class JobArrays : public JobFolder {
 protected:
  void write_rows(const std::string& name, int rows) const {
    write(name, npy(dictionary("'|u1'", "(" + std::to_string(rows) + ", 2)"), static_cast<std::size_t>(rows) * 2));
  }
  [[nodiscard]] Result<Resolved> resolve_inputs(const std::string& inputs, const std::string& more = "") const {
    Result<Document> document = parse_document(
        "job.json", directory_, "{\"script\": \"job.py:run\",\n\"inputs\": {" + inputs + "}" + more + "}");
    EXPECT_TRUE(document);
    return resolve({default_layer(), *document}, around_);
  }
  [[nodiscard]] std::string refusal(const std::string& inputs, const std::string& more = "") const {
    const Result<Resolved> resolved = resolve_inputs(inputs, more);
    if (resolved) return "accepted";
    EXPECT_EQ(resolved.error().fault, Fault::kUsage);
    return resolved.error().message;
  }
  [[nodiscard]] ArraysInput arrays(const std::string& inputs, const std::string& more = "") const {
    const Result<Resolved> resolved = resolve_inputs(inputs, more);
    EXPECT_TRUE(resolved) << resolved.error().message;
    return resolved ? std::get<ArraysInput>(resolved->spec.inputs) : ArraysInput{};
  }
};

std::string why_not_npy(const std::string& bytes) {
  const Result<NpyHeader> header = parse_npy_header(bytes, bytes.size());
  return header ? "accepted" : header.error().message;
}

TEST(JobNpyHeader, GivesShapeSizeAndOrder) {
  for (const char version : {'\1', '\2', '\3'}) {
    const std::string bytes = npy(dictionary("'<f4'", "(5, 3)"), 60, version);
    const Result<NpyHeader> header = parse_npy_header(bytes, bytes.size());
    ASSERT_TRUE(header) << header.error().message;
    EXPECT_THAT(header->shape, ElementsAre(5, 3));
    EXPECT_EQ(header->item_bytes, 4U);
    EXPECT_EQ(header->data_offset, bytes.size() - 60);
    EXPECT_FALSE(header->fortran_order);
  }
  EXPECT_EQ(why_not_npy(npy(dictionary("'>c16'", "(2, 2)", "True"), 64)), "accepted");
  EXPECT_EQ(why_not_npy(npy(dictionary("'<M8[ns]'", "(2L,)"), 16)), "accepted");
  EXPECT_EQ(why_not_npy(npy(dictionary("'<U3'", "(2,)"), 24)), "accepted");
}

TEST(JobNpyHeader, KnowsTheSizeOfRecords) {
  const auto size_of = [](const std::string& descr) {
    const std::string bytes = npy(dictionary(descr, "(1,)"), 4096);
    const Result<NpyHeader> header = parse_npy_header(bytes, bytes.size());
    return header ? std::to_string(header->item_bytes) : header.error().message;
  };
  EXPECT_EQ(size_of("[('a', '<f4'), ('b', '|i1')]"), "5");
  EXPECT_EQ(size_of(R"([("it's", '<f4', (2, 3)), ('\'', '|V3'), (('title', 'x'), [('y', '>i8'), ])])"), "35");
  EXPECT_THAT(size_of("[('a', '<f4'), ('b', '|O')]"), HasSubstr("Python objects"));
  EXPECT_THAT(size_of("[('a', [('b', 'O', (2,))])]"), HasSubstr("Python objects"));
  EXPECT_THAT(size_of("[('a', '<f3')]"), HasSubstr("unknown dtype \"<f3\""));
  EXPECT_THAT(size_of("[]"), HasSubstr("damaged"));
  EXPECT_THAT(size_of("[('a',)]"), HasSubstr("damaged"));
  EXPECT_THAT(size_of("[('a', '<f4', (9223372036854775807, 9223372036854775807))]"), HasSubstr("damaged"));
  std::string deep = "'<f4'";
  for (int i = 0; i < 1000; ++i) deep.insert(0, "[('a', ").append(")]");
  EXPECT_THAT(size_of(deep), HasSubstr("damaged"));
}

TEST(JobNpyHeader, FalseOnesAreRefused) {
  const std::string good = npy(dictionary("'<f8'", "(4,)"), 32);
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_THAT(why_not_npy(good.substr(0, size)), HasSubstr(size < 6 ? "is not a .npy file" : "is cut off")) << size;
  }
  EXPECT_EQ(why_not_npy(good), "accepted");
  EXPECT_THAT(why_not_npy("PK\x03\x04"), HasSubstr(".npz archive"));
  EXPECT_THAT(why_not_npy("1,2,3\n4,5,6\n"), HasSubstr("is not a .npy file"));
  EXPECT_THAT(why_not_npy(npy(dictionary("'|O'", "(4,)"), 32)), HasSubstr("Python objects"));
  EXPECT_THAT(why_not_npy(npy(dictionary("'<f8'", "(-4,)"), 32)), HasSubstr("damaged header"));
  EXPECT_THAT(why_not_npy(npy(dictionary("'<f8'", "(4,)") + " 1", 32)), HasSubstr("damaged header"));
  for (const char* dtype : {"<q8", "<f3", "<f8[s]", "<M8[s", "", "<", "f", "<U0", "|V99999999999"}) {
    const std::string quoted = "'" + std::string(dtype) + "'";
    EXPECT_THAT(why_not_npy(npy(dictionary(quoted, "(4,)"), 32)), HasSubstr("unknown dtype")) << dtype;
  }
  EXPECT_THAT(why_not_npy(npy(dictionary("'<f8'", "(9223372036854775807, 9223372036854775807)"), 32)),
              HasSubstr("2^64 or more"));
  EXPECT_THAT(why_not_npy(npy("{'descr': '<f8'}", 32)), HasSubstr("damaged header"));
  EXPECT_THAT(why_not_npy(npy("{'descr': ", 32)), HasSubstr("damaged header"));
  EXPECT_THAT(why_not_npy(npy(dictionary("'<f8'", "(4,)"), 32, 9)), HasSubstr(".npy version 9"));
}

std::string why_not_safetensors(const std::string& bytes) {
  const std::string head = bytes.substr(0, kSafetensorsHead);
  const auto tensors = parse_safetensors_header(head, bytes.size());
  return tensors ? "accepted" : tensors.error().message;
}

TEST(JobSafetensorsHeader, GivesThePlacesOfTheTensors) {
  const std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," + tensor("b", "F32", "[2,3]", "[8,32]") + "," +
                             tensor("a", "BF16", "[4]", "[0,8]") + "," + tensor("none", "F8_E5M2", "[7]", "[32,39]") +
                             "," + tensor("empty", "I64", "[0,4]", "[39,39]") + "}  ";
  const std::string bytes = safetensors(header, 39);
  const auto tensors = parse_safetensors_header(bytes, bytes.size());
  ASSERT_TRUE(tensors) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 4U);
  EXPECT_EQ((*tensors)[0].name, "b");
  EXPECT_EQ((*tensors)[0].dtype, "F32");
  EXPECT_THAT((*tensors)[0].shape, ElementsAre(2, 3));
  EXPECT_EQ((*tensors)[0].begin, 8 + header.size() + 8);
  EXPECT_EQ((*tensors)[0].end, 8 + header.size() + 32);
  const char* dtypes[] = {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"};
  for (const char* name : dtypes) EXPECT_NE(find_safe_dtype(name), nullptr) << name;
  EXPECT_EQ(find_safe_dtype("F8_E5M2"), nullptr);
}

TEST(JobSafetensorsHeader, FalseOnesAreRefused) {
  const std::string good = safetensors("{" + tensor("a", "F32", "[2,3]", "[0,24]") + "}", 24);
  EXPECT_EQ(why_not_safetensors(good), "accepted");
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_THAT(why_not_safetensors(good.substr(0, size)), StartsWith("is cut off")) << size;
  }
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets,
                      std::size_t data) {
    return why_not_safetensors(safetensors("{" + tensor("x", dtype, shape, offsets) + "}", data));
  };
  EXPECT_THAT(why_not_safetensors("this is no file of tensors"), HasSubstr("is not a .safetensors file"));
  EXPECT_THAT(why_not_safetensors(std::string(8, '\xFF') + "{}"), HasSubstr("claims 18446744073709551615 bytes"));
  EXPECT_THAT(why_not_safetensors(std::string(8, '\0') + "{}"), HasSubstr("claims 0 bytes"));
  EXPECT_THAT(why_not_safetensors(safetensors("{" + std::string(100'000, ' ') + "}", 0)), HasSubstr("reads at most"));
  EXPECT_THAT(why_not_safetensors(safetensors("{\"a\": [1}", 0)), HasSubstr("header:1:"));
  EXPECT_THAT(why_not_safetensors(safetensors("{\"a\":" + std::string(50'000, '['), 0)), HasSubstr("levels deep"));
  EXPECT_THAT(why_not_safetensors(safetensors("{\"a\": 1, \"a\": 2}", 0)), HasSubstr("duplicate key"));
  EXPECT_THAT(why_not_safetensors(safetensors("{\"a\": 1}", 0)), HasSubstr("is no object"));
  EXPECT_THAT(why_not_safetensors(safetensors("{\"a\": {}}", 0)), HasSubstr("has no dtype"));
  EXPECT_THAT(why_not_safetensors(safetensors("{\"__metadata__\": {\"a\": 1}}", 0)), HasSubstr("__metadata__"));
  EXPECT_THAT(one("F32", "[-2,3]", "[0,24]", 24), HasSubstr("no shape"));
  EXPECT_THAT(one("F32", "[2.0,3]", "[0,24]", 24), HasSubstr("no shape"));
  EXPECT_THAT(one("F32", "6", "[0,24]", 24), HasSubstr("no shape"));
  EXPECT_THAT(one("F32", "[2,3]", "[0]", 24), HasSubstr("no data_offsets"));
  EXPECT_THAT(one("F32", "[2,3]", "[24,0]", 24), HasSubstr("no data_offsets"));
  EXPECT_THAT(one("F32", "[2,3]", "[0,9223372036854775808]", 24), HasSubstr("no data_offsets"));
  EXPECT_THAT(one("F32", "[2,3]", "[0,9223372036854775807]", 24), HasSubstr("cut off"));
  EXPECT_THAT(one("F32", "[2,4]", "[0,24]", 24), HasSubstr("needs 32 bytes by its shape [2,4]"));
  EXPECT_THAT(one("F32", "[4611686018427387904,4611686018427387904]", "[0,24]", 24), HasSubstr("2^64 or more"));
  EXPECT_THAT(one("F32", "[4611686018427387904,4]", "[0,0]", 0), HasSubstr("2^64 or more"));
  EXPECT_THAT(one("F32", "[2,3]", "[8,32]", 32), HasSubstr("the 8 bytes in front of the tensor \"x\" belong to no"));
  EXPECT_THAT(one("F32", "[2,3]", "[0,24]", 25), HasSubstr("the last 1 bytes of the file"));
  const std::string two = tensor("a", "U8", "[16]", "[0,16]") + "," + tensor("b", "U8", "[16]", "[8,24]");
  EXPECT_THAT(why_not_safetensors(safetensors("{" + two + "}", 24)), HasSubstr("\"a\" and the tensor \"b\" overlap"));
}

TEST_F(JobArrays, OneFileIsTheOnlyArgument) {
  write_rows("x.npy", 5);
  const ArraysInput found = arrays("\"npy\": \"x.npy\", \"batch\": 2");
  ASSERT_EQ(found.arrays.size(), 1U);
  EXPECT_EQ(found.arrays[0].path, directory_ + "/x.npy");
  EXPECT_EQ(found.arrays[0].rows, 5);
  EXPECT_EQ(found.arrays[0].name, "");
  EXPECT_EQ(found.batch, 2);
  EXPECT_FALSE(found.one_by_one);
  EXPECT_THAT(refusal("\"npy\": \"x.npy\"", ", \"call\": \"kwargs\""),
              AllOf(StartsWith("job.json:2: /call: found \"kwargs\""), HasSubstr("or say \"item\"")));
  EXPECT_THAT(refusal("\"npy\": \"x.npy\"", ", \"call\": \"args\""), HasSubstr("the function's only argument"));
  EXPECT_EQ(refusal("\"npy\": \"x.npy\"", ", \"call\": \"item\""), "accepted");
  write("scalar.npy", npy(dictionary("'<f8'", "()"), 8));
  write("empty.npy", npy(dictionary("'<f8'", "(0, 3)"), 0));
  EXPECT_THAT(refusal("\"npy\": \"scalar.npy\""), HasSubstr("scalar.npy: holds a single number"));
  EXPECT_THAT(refusal("\"npy\": \"empty.npy\""), HasSubstr("empty.npy: has no inputs"));
  EXPECT_THAT(refusal("\"npy\": \"none.npy\""), StartsWith("job.json:2: /inputs/npy: " + directory_ + "/none.npy: "));
  EXPECT_THAT(refusal("\"npy\": \"a\\u0000b\""), HasSubstr("NUL"));
}

TEST_F(JobArrays, SeveralFilesAreKeywordArguments) {
  write_rows("x.npy", 5);
  write_rows("y.npy", 5);
  write_rows("z.npy", 4);
  const std::string both = R"("npy": {"image": "x.npy", "label": "y.npy"})";
  const Result<Resolved> resolved = resolve_inputs(both);
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->spec.call, CallStyle::kKwargs);
  EXPECT_EQ(resolved->merged["call"], "kwargs");
  EXPECT_EQ(resolved->merged["inputs"]["npy"]["label"], directory_ + "/y.npy");
  const ArraysInput found = arrays(both, ", \"call\": \"kwargs\"");
  ASSERT_EQ(found.arrays.size(), 2U);
  EXPECT_EQ(found.arrays[1].name, "label");
  EXPECT_FALSE(found.one_by_one);
  EXPECT_THAT(refusal(both, ", \"call\": \"item\""), HasSubstr("handed over as keyword arguments"));
  EXPECT_THAT(refusal(R"("npy": {"image": "x.npy", "label": "z.npy"})"),
              AllOf(HasSubstr("\"image\" has 5 (" + directory_ + "/x.npy)"), HasSubstr("\"label\" has 4 (")));
  EXPECT_THAT(refusal(R"("npy": {"a": "x.npy",)"
                      "\n\n"
                      R"("b": "none.npy"})"),
              StartsWith("job.json:4: /inputs/npy/b: "));
  EXPECT_THAT(refusal(R"("npy": {"a b": "x.npy"})"), HasSubstr("found the name \"a b\""));
  EXPECT_THAT(refusal(R"("npy": {})"), HasSubstr("/inputs/npy: found {}"));
  EXPECT_THAT(refusal(R"("npy": {"a": 3})"), HasSubstr("/inputs/npy/a: found 3"));
}

TEST_F(JobArrays, TheUsersConfigurationMaySayAnotherCall) {
  write_rows("x.npy", 5);
  const Result<Document> config = parse_document("config.json", directory_, R"({"call": "args"})");
  const Result<Document> job = parse_document("job.json", directory_, R"({"script": "job.py:run",
    "inputs": {"npy": {"image": "x.npy"}}})");
  ASSERT_TRUE(config && job);
  const Result<Resolved> resolved = resolve({default_layer(), *config, *job}, around_);
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->spec.call, CallStyle::kKwargs);
}

TEST_F(JobArrays, FoldersAndPatternsAreFilesOneByOne) {
  std::filesystem::create_directory(directory_ + "/[p]*");
  write_rows("[p]*/b.npy", 2);
  write_rows("[p]*/a.npy", 3);
  write_rows("[p]*/c.npy", 0);
  write("[p]*/notes.txt", "");
  write("[p]*/.hidden.npy", "");
  const auto names = [](const ArraysInput& found) {
    std::string all;
    for (const InputArray& array : found.arrays) all += std::filesystem::path(array.path).filename().string() + " ";
    return all;
  };
  for (const char* inputs : {R"("npy": "[p]*", "batch": 2)", R"("npy": "[p]*/", "batch": 2)"}) {
    const ArraysInput found = arrays(inputs);
    EXPECT_TRUE(found.one_by_one);
    EXPECT_EQ(names(found), "a.npy b.npy c.npy ");
    EXPECT_EQ(found.arrays[0].path, directory_ + "/[p]*/a.npy");
  }
  EXPECT_EQ(names(arrays(R"("npy": "\\[p\\]\\*/[ab].npy")")), "a.npy b.npy ");
  EXPECT_EQ(names(arrays(R"("npy": "*/?.npy")")), "a.npy b.npy c.npy ");
  EXPECT_EQ(refusal(R"("npy": "*/c.npy")"), "accepted");  // without batch an array without rows is a task too
  EXPECT_THAT(refusal(R"("npy": "*/c.npy", "batch": 1)"), HasSubstr("the arrays have no rows"));
  EXPECT_THAT(refusal(R"("npy": "*/n*")"), HasSubstr("notes.txt: is not a .npy file"));
  EXPECT_THAT(refusal(R"("npy": "*/x*")"), HasSubstr("no file name matches"));
  std::filesystem::create_directory(directory_ + "/none");
  EXPECT_THAT(refusal(R"("npy": "none")"), HasSubstr(directory_ + "/none/*.npy: has no inputs"));
  write("[p]*/d.npy", npy(dictionary("'<f8'", "()"), 8));
  EXPECT_EQ(refusal(R"("npy": "[p]*")"), "accepted");
  EXPECT_THAT(refusal(R"("npy": "[p]*", "batch": 2)"), HasSubstr("d.npy: holds a single number"));
  write_rows("[1].npy", 2);  // an existing file is not a pattern
  EXPECT_FALSE(arrays(R"("npy": "[1].npy")").one_by_one);
}

TEST_F(JobArrays, FilesWithMoreRowsThanCanBeCountedAreRefused) {
  write("1.npy", npy(dictionary("'|u1'", "(9223372036854775807, 0)"), 0));
  write("2.npy", npy(dictionary("'|u1'", "(9223372036854775807, 0)"), 0));
  EXPECT_THAT(refusal(R"("npy": "?.npy", "batch": 9007199254740991)"), HasSubstr("2^63 rows or more"));
}

TEST_F(JobArrays, TensorsAreKeywordArguments) {
  const std::string header = "{" + tensor("image", "F32", "[2,3]", "[0,24]") + "," +
                             tensor("label", "I64", "[2]", "[24,40]") + "," + tensor("w", "BF16", "[4]", "[40,48]") +
                             "," + tensor("f8", "F8_E4M3", "[2]", "[48,50]") + "," +
                             tensor("x", "U8", "[]", "[50,51]") + "," + tensor("odd", "F32", "[2]", "[51,59]") + "," +
                             tensor("", "U8", "[2]", "[59,61]") + "}";
  write("f.safetensors", safetensors(header + std::string(8 - header.size() % 8, ' '), 61));
  const std::string file = R"("safetensors": "f.safetensors")";
  ArraysInput found = arrays(file + R"(, "batch": 2, "tensors": ["image", "label"])");
  ASSERT_EQ(found.arrays.size(), 2U);
  EXPECT_EQ(found.arrays[1].name, "label");
  EXPECT_EQ(found.arrays[1].dtype, "<i8");
  EXPECT_EQ(found.arrays[1].rows, 2);
  EXPECT_EQ(found.arrays[1].path, directory_ + "/f.safetensors");
  EXPECT_EQ(found.arrays[1].offset % 8, 0U);
  found = arrays(file + R"(, "tensors": {"weights": "w"})", ", \"call\": \"kwargs\"");
  EXPECT_EQ(found.arrays[0].name, "weights");
  EXPECT_EQ(found.arrays[0].dtype, "bfloat16");
  const auto refused = [&](const std::string& tensors) { return refusal(file + ", \"tensors\": " + tensors); };
  EXPECT_THAT(refusal(file), HasSubstr("\"f8\" has the dtype \"F8_E4M3\", which numpy has not"));
  EXPECT_THAT(refused(R"(["image", "w"])"), AllOf(HasSubstr("\"image\" has 2"), HasSubstr("\"w\" has 4")));
  EXPECT_THAT(refused(R"(["labl"])"), HasSubstr("has no tensor \"labl\"\n  did you mean \"label\"?"));
  EXPECT_THAT(refused(R"(["nothing like it"])"), HasSubstr("it has \"image\", \"label\""));
  EXPECT_THAT(refused(R"(["x"])"), HasSubstr("is a single number"));
  EXPECT_THAT(refused(R"(["odd"])"), HasSubstr("is not aligned"));
  EXPECT_THAT(refused(R"([""])"), HasSubstr("a tensor without a name"));
  EXPECT_EQ(refused(R"({"nameless": ""})"), "accepted");
  EXPECT_THAT(refused(R"(["image", "image"])"), HasSubstr("/inputs/tensors/1: found \"image\" a second time"));
  EXPECT_THAT(refused(R"({"a-b": "image"})"), HasSubstr("found the name \"a-b\""));
  EXPECT_THAT(refused("[]"), HasSubstr("/inputs/tensors: found []"));
  EXPECT_THAT(refusal(file + R"(, "tensors": ["image"])", ", \"call\": \"item\""), HasSubstr("keyword arguments"));
  write("none.safetensors", safetensors("{}", 0));
  EXPECT_THAT(refusal(R"("safetensors": "none.safetensors")"), HasSubstr("it has no tensors"));
  write("rows.safetensors", safetensors("{" + tensor("a", "U8", "[0]", "[0,0]") + "}", 0));
  EXPECT_THAT(refusal(R"("safetensors": "rows.safetensors")"), HasSubstr("the tensors have no rows"));
  EXPECT_THAT(refusal(R"("safetensors": "nowhere")"), HasSubstr("nowhere: cannot be read: No such file"));
  EXPECT_THAT(refusal(R"("safetensors": ".")"), HasSubstr("is not a regular file"));
}

TEST_F(JobArrays, ThePlanShowsThem) {
  write_rows("x.npy", 5);
  write_rows("y.npy", 5);
  const auto shown = [&](const std::string& inputs) -> std::string {
    const Result<Resolved> resolved = resolve_inputs(inputs);
    if (!resolved) return resolved.error().message;
    for (const Decision& decision : resolved->decisions) {
      if (decision.field == "inputs") return decision.value;
    }
    return "nothing";
  };
  EXPECT_EQ(shown(R"("npy": {"a": "x.npy", "b": "y.npy"}, "batch": 2)"),
            "a: " + directory_ + "/x.npy, b: " + directory_ + "/y.npy, 5 rows in batches of 2");
  EXPECT_EQ(shown(R"("npy": "*.npy")"),
            "2 files from " + directory_ + "/x.npy to " + directory_ + "/y.npy, one a task");
  write("f.safetensors", safetensors("{" + tensor("p", "U8", "[2]", "[0,2]") + "}", 2));
  EXPECT_EQ(shown(R"("safetensors": "f.safetensors")"), directory_ + "/f.safetensors: p, 2 rows");
}

}  // namespace
}  // namespace mprun
