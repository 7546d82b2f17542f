#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "formats/array_bytes.h"
#include "formats/dtype.h"
#include "job/array_file.h"
#include "job/resolve_parts.h"
#include "json/json.h"
#include "json/words.h"

namespace mprun::job {

namespace {

constexpr std::uint64_t kPage = 4096;      // each tensor begins on its own page
constexpr std::size_t kMostAxes = 32;      // numpy's limit
constexpr std::size_t kMostTensors = 400;  // one variable describes all of them to processes, and may have 128 KiB
constexpr auto kMostBytes = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

/// One tensor of the field, while it is resolved.
struct Entry {
  Resolving& job;
  std::string pointer;
  SharedTensor tensor;

  [[nodiscard]] bool has(const char* key) const { return job.layers.find(at(key)) != nullptr; }
  [[nodiscard]] std::string at(const char* key) const { return pointer + "/" + key; }
  [[nodiscard]] Error error(const char* key, const std::string& words) const {
    return job.layers.error(at(key), words);
  }
};

/// The one of `npy`, `safetensors` and `shape` that is set; refuses fields of the others.
Result<std::string> only_source(const Entry& entry) {
  std::string source;
  for (const char* key : {"npy", "safetensors", "shape"}) {
    if (!entry.has(key)) continue;
    if (!source.empty()) {
      return entry.error(key,
                         "found " + in_quotes(source) + " and " + in_quotes(key) + ", allowed: exactly one of them");
    }
    source = key;
  }
  if (source.empty()) {
    return entry.job.layers.error(
        entry.pointer,
        "says neither what is in it nor how large it is, allowed: exactly one of npy, safetensors, shape");
  }
  for (const auto& [key, with] : {std::pair{"tensor", "safetensors"}, std::pair{"dtype", "shape"}}) {
    if (!entry.has(key) || source == with) continue;
    return entry.error(key, "fits " + in_quotes(with) + " only, found " + in_quotes(source));
  }
  return source;
}

Result<std::string> take_path(Entry& entry, const char* key) {
  std::string path = entry.job.path_from_owner(entry.at(key), entry.job.text(entry.at(key)));
  entry.job.layers.put(entry.at(key), path);
  return path;
}

Result<void> read_npy(Entry& entry) {
  Result<std::string> path = take_path(entry, "npy");
  if (!path) return std::move(path).error();
  const Result<NpyHeader> header = read_npy_header(*path);
  if (!header) return entry.error("npy", header.error().message);
  if (header->descr.empty()) {
    return entry.error("npy", *path + ": holds records; shared tensors hold numbers: save each field as a file");
  }
  const std::optional<Dtype> dtype = find_dtype(header->descr);
  if (!dtype) {
    return entry.error("npy", *path + ": has the dtype " + in_quotes(clip(header->descr, 40)) +
                                  ", shared tensors hold numbers: " + comma_list(dtype_names()));
  }
  entry.tensor.dtype = dtype->text;
  entry.tensor.shape = header->shape;
  entry.tensor.fortran_order = header->fortran_order;
  entry.tensor.path = *path;
  entry.tensor.path_offset = header->data_offset;
  return {};
}

Result<void> read_safetensors(Entry& entry) {
  Result<std::string> path = take_path(entry, "safetensors");
  if (!path) return std::move(path).error();
  const std::string wanted = entry.has("tensor") ? entry.job.text(entry.at("tensor")) : entry.tensor.name;
  const Result<SafeTensor> found = read_safe_tensor(*path, wanted);
  if (!found) return entry.error("safetensors", found.error().message);
  const SafeDtype* dtype = find_safe_dtype(found->dtype);
  if (dtype == nullptr) {
    return entry.error("safetensors", *path + ": the tensor " + in_quotes(clip(wanted)) + " has the dtype " +
                                          in_quotes(clip(found->dtype, 20)) + ", which numpy has not");
  }
  entry.tensor.dtype = dtype->numpy;
  entry.tensor.shape = found->shape;
  entry.tensor.path = *path;
  entry.tensor.path_offset = found->begin;
  return {};
}

Result<void> read_shape(Entry& entry) {
  const std::string allowed = ", allowed: " + comma_list(dtype_names()) + ", or a code such as \"<f4\"";
  if (!entry.has("dtype")) return entry.job.layers.error(entry.pointer, "has a shape but no dtype" + allowed);
  const std::string text = entry.job.text(entry.at("dtype"));
  const std::optional<Dtype> dtype = find_dtype(text);
  if (!dtype) {
    std::string words = "found " + in_quotes(clip(text)) + allowed;
    if (text == "object" || text == "O") words += "\n  Python objects cannot be shared: processes have their own";
    if (const auto near = nearest_name(text, dtype_names())) words += "\n  did you mean " + in_quotes(*near) + "?";
    return entry.error("dtype", words);
  }
  entry.tensor.dtype = dtype->text;
  entry.tensor.shape = entry.job.layers.find(entry.at("shape"))->get<std::vector<std::int64_t>>();
  return {};
}

std::string shape_text(const std::vector<std::int64_t>& shape) { return Json(shape).dump(); }

/// Sets its size, and its place after `*end`.
Result<void> place(Entry& entry, const std::string& source, std::uint64_t* end) {
  SharedTensor& tensor = entry.tensor;
  if (tensor.shape.size() > kMostAxes) {
    return entry.error(source.c_str(), "has " + std::to_string(tensor.shape.size()) + " axes, allowed: at most " +
                                           std::to_string(kMostAxes));
  }
  const std::uint64_t item_bytes = find_dtype(tensor.dtype)->bytes;
  std::vector<std::int64_t> lengths = tensor.shape;  // numpy refuses an overflow even with a length of 0
  std::replace(lengths.begin(), lengths.end(), std::int64_t{0}, std::int64_t{1});
  const std::optional<std::uint64_t> most = array_bytes(item_bytes, lengths);
  if (!most || *most > kMostBytes) {
    return entry.error(source.c_str(),
                       "an array of the shape " + clip(shape_text(tensor.shape)) + " has 2^63 bytes or more");
  }
  tensor.bytes = array_bytes(item_bytes, tensor.shape).value_or(0);
  tensor.offset = *end;
  const std::uint64_t pages = (tensor.bytes + kPage - 1) / kPage;
  if (pages > (kMostBytes - *end) / kPage)
    return entry.error(source.c_str(), "the shared tensors have 2^63 bytes or more");
  *end += pages * kPage;
  return {};
}

Result<void> resolve_one(Entry& entry, std::uint64_t* end) {
  const Result<std::string> source = only_source(entry);
  if (!source) return source.error();
  Result<void> read = *source == "npy"           ? read_npy(entry)
                      : *source == "safetensors" ? read_safetensors(entry)
                                                 : read_shape(entry);
  if (!read) return read;
  return place(entry, *source, end);
}

Result<void> check_memory(const Resolving& job, std::uint64_t bytes) {
  if (bytes <= job.around.memory_bytes) return {};
  const auto& tensors = job.spec.shared;
  const auto largest =
      std::max_element(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  return job.layers.error("/shared/" + largest->name,
                          "the shared tensors take " + size_text(bytes) + " of memory (" + std::to_string(bytes) +
                              " bytes), this one " + size_text(largest->bytes) + "; there are " +
                              size_text(job.around.memory_bytes) + " (" + job.around.memory_source +
                              ")\n  use a smaller dtype or shape, free memory, or hand large arrays out as \"inputs\", "
                              "which are not kept in memory");
}

Result<void> check_huge_pages(const Resolving& job, std::uint64_t bytes) {
  const std::uint64_t page = job.around.huge_page_bytes;
  if (page == 0) {
    return job.layers.error("/huge_pages",
                            "found \"hugetlb\", but this kernel has no pool of huge pages\n  use \"transparent\"");
  }
  const std::uint64_t needed = std::max<std::uint64_t>(1, bytes / page + (bytes % page != 0 ? 1 : 0));
  if (needed <= job.around.free_huge_pages) return {};
  return job.layers.error("/huge_pages",
                          "found \"hugetlb\", but the shared tensors take " + std::to_string(needed) +
                              (needed == 1 ? " page of " : " pages of ") + size_text(page) + ", and the pool has " +
                              std::to_string(job.around.free_huge_pages) +
                              " free\n  make it larger as root (sysctl vm.nr_hugepages=N, of all its pages), or use "
                              "\"transparent\"");
}

}  // namespace

Result<void> resolve_shared(Resolving& job) {
  const Json* field = job.layers.find("/shared");
  if (field == nullptr) return {};
  std::vector<std::string> names;
  for (const auto& [name, value] : field->items()) names.push_back(name);
  std::sort(names.begin(), names.end());
  if (names.size() > kMostTensors) {
    return job.layers.error("/shared", "found " + std::to_string(names.size()) + " tensors, allowed: at most " +
                                           std::to_string(kMostTensors) + "\n  put small ones together in one");
  }
  std::uint64_t end = 0;
  for (const std::string& name : names) {
    Entry entry{job, "/shared/" + name, {}};
    entry.tensor.name = name;
    if (Result<void> resolved = resolve_one(entry, &end); !resolved) return resolved;
    job.spec.shared.push_back(std::move(entry.tensor));
  }
  job.spec.hugetlb = job.text("/huge_pages") == "hugetlb";
  return job.spec.hugetlb ? check_huge_pages(job, end) : check_memory(job, end);
}

std::string describe_shared(const std::vector<SharedTensor>& tensors) {
  constexpr std::size_t kMostShown = 8;
  std::string words;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const SharedTensor& tensor = tensors[i];
    bytes += tensor.bytes;
    if (i >= kMostShown) continue;
    words += tensor.name + " " + tensor.dtype + " " + clip(shape_text(tensor.shape));
    words += tensor.path.empty() ? ", " : " from " + tensor.path + ", ";
  }
  return words + (tensors.size() > kMostShown ? "..., " : "") + size_text(bytes) + " in all";
}

}  // namespace mprun::job
