#include <sys/stat.h>

#include <algorithm>

#include "job/array_file.h"
#include "job/input_sources.h"
#include "job/resolve_parts.h"
#include "json/json.h"
#include "json/words.h"

namespace mprun::job {

namespace {

enum class PathKind { kFile, kFolder, kPattern };

/// An existing file or folder is taken itself, whatever its name; otherwise the name may be a pattern.
PathKind kind_of(const std::string& path, const std::string& found) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) return S_ISDIR(status.st_mode) ? PathKind::kFolder : PathKind::kFile;
  return found.find_first_of("*?[") == std::string::npos ? PathKind::kFile : PathKind::kPattern;
}

/// Makes a path of the spec absolute and puts it back.
Result<std::string> take_path(Resolving& job, const std::string& pointer) {
  const std::string found = job.text(pointer);
  if (found.find('\0') != std::string::npos) return job.layers.error(pointer, "contains a NUL character");
  std::string path = job.path_from_owner(pointer, found);
  job.layers.put(pointer, path);
  return path;
}

Error no_rows(const Resolving& job, const std::string& pointer, const InputArray& array) {
  return job.layers.error(pointer, array.path + (array.shape.empty() ? ": holds a single number, which has no rows"
                                                                     : ": has no inputs: the array has no rows"));
}

/// Adds the files of a folder or pattern: tasks are the files, or batches of their rows.
Result<void> add_files(Resolving& job, const std::string& pattern, ArraysInput* inputs) {
  const std::string pointer = "/inputs/npy";
  Result<std::vector<std::string>> paths = match_files(pattern);
  if (!paths) return std::move(paths).error();
  if (paths->empty()) return job.layers.error(pointer, pattern + ": has no inputs: no file name matches");
  inputs->one_by_one = true;
  std::int64_t rows = 0;
  for (const std::string& path : *paths) {
    Result<InputArray> array = read_npy_file(path);
    if (!array) return job.layers.error(pointer, array.error().message);
    if (inputs->batch && array->shape.empty()) return no_rows(job, pointer, *array);
    if (__builtin_add_overflow(rows, array->rows, &rows)) {
      return job.layers.error(pointer, pattern + ": the files have 2^63 rows or more");
    }
    inputs->arrays.push_back(std::move(*array));
  }
  if (!inputs->batch || rows > 0) return {};
  return job.layers.error(pointer, pattern + ": has no inputs: the arrays have no rows");
}

Result<void> add_file(Resolving& job, const std::string& pointer, const std::string& path, const std::string& name,
                      ArraysInput* inputs) {
  Result<InputArray> array = read_npy_file(path);
  if (!array) return job.layers.error(pointer, array.error().message);
  if (array->rows == 0) return no_rows(job, pointer, *array);
  array->name = name;
  inputs->arrays.push_back(std::move(*array));
  return {};
}

Result<void> check_argument(const Resolving& job, const std::string& pointer, const std::string& name) {
  if (is_identifier(name)) return {};
  return job.layers.error(pointer, "found the name " + in_quotes(clip(name)) +
                                       ", allowed: a name that an argument of the function can have");
}

Result<void> add_npy(Resolving& job, ArraysInput* inputs) {
  const std::string pointer = "/inputs/npy";
  const Json found = *job.layers.find(pointer);
  if (found.is_object()) {
    for (const auto& [name, file] : found.items()) {
      if (Result<void> checked = check_argument(job, pointer, name); !checked) return checked;
      std::string place = pointer;
      place.append("/").append(name);
      Result<std::string> path = take_path(job, place);
      if (!path) return std::move(path).error();
      if (Result<void> added = add_file(job, place, *path, name, inputs); !added) return added;
    }
    return {};
  }
  const std::string text = found.get<std::string>();
  const std::string pattern = pattern_from_owner(job, pointer, text);
  Result<std::string> path = take_path(job, pointer);
  if (!path) return std::move(path).error();
  switch (kind_of(*path, text)) {
    case PathKind::kFolder:
      return add_files(job, escape_pattern(*path) + (path->back() == '/' ? "*.npy" : "/*.npy"), inputs);
    case PathKind::kPattern:
      job.layers.put(pointer, pattern);
      return add_files(job, pattern, inputs);
    case PathKind::kFile:
      break;
  }
  return add_file(job, pointer, *path, "", inputs);
}

/// Reads `tensors`: a list of names, or an object of arguments and tensors.
Result<std::vector<TensorArgument>> read_tensors(const Resolving& job) {
  std::vector<TensorArgument> wanted;
  const std::string pointer = "/inputs/tensors";
  const Json* tensors = job.layers.find(pointer);
  if (tensors == nullptr) return wanted;
  for (const auto& [key, value] : tensors->items()) {
    const std::string name = value.get<std::string>();
    const std::string argument = tensors->is_array() ? name : key;
    if (tensors->is_object()) {
      if (Result<void> checked = check_argument(job, pointer, key); !checked) return std::move(checked).error();
    }
    const bool twice =
        std::any_of(wanted.begin(), wanted.end(), [&](const TensorArgument& other) { return other.first == argument; });
    if (twice)
      return job.layers.error(std::string(pointer).append("/").append(key),
                              "found " + in_quotes(clip(name)) + " a second time");
    wanted.emplace_back(argument, name);
  }
  return wanted;
}

Result<void> add_tensors(Resolving& job, ArraysInput* inputs) {
  const std::string pointer = "/inputs/safetensors";
  Result<std::string> path = take_path(job, pointer);
  if (!path) return std::move(path).error();
  const Result<std::vector<TensorArgument>> wanted = read_tensors(job);
  if (!wanted) return wanted.error();
  Result<std::vector<InputArray>> arrays = read_safetensors_file(*path, *wanted);
  if (!arrays) return job.layers.error(pointer, arrays.error().message);
  inputs->arrays = std::move(*arrays);
  return {};
}

/// Checks that all arrays have the same rows, as every task gets the same rows of each.
Result<void> check_rows(const Resolving& job, const std::string& pointer, const std::vector<InputArray>& arrays) {
  const InputArray& first = arrays.front();
  const auto other =
      std::find_if(arrays.begin(), arrays.end(), [&](const InputArray& array) { return array.rows != first.rows; });
  const auto rows_of = [](const InputArray& array) {
    return in_quotes(clip(array.name)) + " has " + std::to_string(array.rows) + " (" + array.path + ")";
  };
  if (other != arrays.end()) {
    return job.layers.error(pointer,
                            "the arrays differ in their number of rows: " + rows_of(first) + ", " + rows_of(*other) +
                                "\n  a task gets the same rows of each" +
                                (first.dtype.empty() ? "" : "; name those that are wanted: \"tensors\": [...]"));
  }
  if (first.rows > 0) return {};
  return job.layers.error(pointer, first.path + ": has no inputs: the tensors have no rows");
}

/// Named arrays are keyword arguments, an array without a name is the only argument: `call` may say that and nothing
/// else.
Result<void> settle_call(Resolving& job, bool named) {
  if (job.spec.kind != JobKind::kFunction) return {};
  const std::string found = job.text("/call");
  const std::string fits = named ? "kwargs" : "item";
  const bool asked = job.layers.is_set("/call") && job.layers.rank("/call") >= job.layers.rank("/inputs");
  if (asked && found != fits) {
    return job.layers.error(
        "/call",
        "found " + in_quotes(found) +
            (named ? ", but arrays with names are handed over as keyword arguments\n  leave it out, or say "
                   : ", but an array without a name is the function's only argument\n  leave it out, or say ") +
            in_quotes(fits));
  }
  job.layers.put("/call", fits);
  job.spec.call = named ? CallStyle::kKwargs : CallStyle::kItem;
  return {};
}

}  // namespace

Result<void> resolve_arrays(Resolving& job, const std::string& kind) {
  ArraysInput inputs;
  if (const Json* batch = job.layers.find("/inputs/batch")) inputs.batch = batch->get<std::int64_t>();
  Result<void> added = kind == "npy" ? add_npy(job, &inputs) : add_tensors(job, &inputs);
  if (!added) return added;
  const bool named = !inputs.arrays.front().name.empty();
  if (named) {
    if (Result<void> checked = check_rows(job, "/inputs/" + kind, inputs.arrays); !checked) return checked;
  }
  if (Result<void> settled = settle_call(job, named); !settled) return settled;
  job.spec.inputs = std::move(inputs);
  return {};
}

std::string describe_arrays(const ArraysInput& inputs) {
  constexpr std::size_t kMostShown = 8;
  const std::vector<InputArray>& arrays = inputs.arrays;
  if (inputs.one_by_one) {
    std::string words = std::to_string(arrays.size()) + (arrays.size() == 1 ? " file" : " files");
    words += " from " + arrays.front().path;
    if (arrays.size() > 1) words += " to " + arrays.back().path;
    return words + (inputs.batch ? ", batches of " + std::to_string(*inputs.batch) + " rows" : ", one a task");
  }
  std::string words;
  for (std::size_t i = 0; i < arrays.size() && i < kMostShown; ++i) {
    const InputArray& array = arrays[i];
    if (i > 0) words += ", ";
    if (!array.dtype.empty()) {  // a tensor: all are in one file
      words += (i == 0 ? array.path + ": " : "") + clip(array.name);
    } else {
      words += (array.name.empty() ? "" : array.name + ": ") + array.path;
    }
  }
  if (arrays.size() > kMostShown) words += ", ...";
  words += ", " + std::to_string(arrays.front().rows) + " rows";
  return words + (inputs.batch ? " in batches of " + std::to_string(*inputs.batch) : "");
}

}  // namespace mprun::job
