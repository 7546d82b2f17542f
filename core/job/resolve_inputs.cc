#include <algorithm>
#include <array>

#include "job/resolve_parts.h"
#include "json/json.h"
#include "json/words.h"

namespace mprun::job {

namespace {

constexpr std::array<const char*, 8> kKinds = {"items", "range",       "lines", "jsonl",
                                               "npy",   "safetensors", "glob",  "grid"};

bool is_arrays(const std::string& kind) { return kind == "npy" || kind == "safetensors"; }

/// The one kind of inputs that is set.
Result<std::string> only_kind(const Resolving& job) {
  const Json& inputs = *job.layers.find("/inputs");
  std::string kind;
  for (const char* name : kKinds) {
    if (!inputs.contains(name)) continue;
    if (!kind.empty()) {
      return job.layers.error(std::string("/inputs/") + name, "found " + in_quotes(kind) + " and " + in_quotes(name) +
                                                                  ", allowed: exactly one of them");
    }
    kind = name;
  }
  const std::vector<std::string> names(kKinds.begin(), kKinds.end());
  if (kind.empty()) return job.layers.error("/inputs", "found no inputs, allowed: exactly one of " + comma_list(names));
  if (inputs.contains("batch") && !is_arrays(kind)) {
    return job.layers.error("/inputs/batch", "fits \"npy\" and \"safetensors\" only, found " + in_quotes(kind));
  }
  if (inputs.contains("tensors") && kind != "safetensors") {
    return job.layers.error("/inputs/tensors", "fits \"safetensors\" only, found " + in_quotes(kind));
  }
  return kind;
}

Result<RangeInput> read_range(const Resolving& job, const Json& value) {
  if (value.is_number()) return RangeInput{0, value.get<std::int64_t>(), 1};
  RangeInput range{value[0].get<std::int64_t>(), value[1].get<std::int64_t>(), 1};
  if (value.size() == 3) range.step = value[2].get<std::int64_t>();
  if (range.step == 0) return job.layers.error("/inputs/range/2", "found 0, allowed: a step other than 0");
  return range;
}

/// Checks standard input, which has one reader and no prompt.
Result<void> check_stdin(const Resolving& job, const std::string& pointer) {
  if (job.layers.reads_stdin()) {
    return job.layers.error(pointer, "standard input is read for the job spec already; give the inputs as a file");
  }
  if (job.around.stdin_is_terminal) {
    return job.layers.error(pointer,
                            "found \"-\", but standard input is a terminal\n  pipe the lines in: "
                            "`some-command | mprun ...`, or give a file");
  }
  return {};
}

Result<std::string> read_path(Resolving& job, const std::string& kind) {
  const std::string pointer = "/inputs/" + kind;
  const std::string found = job.text(pointer);
  if (found.find('\0') != std::string::npos) return job.layers.error(pointer, "contains a NUL character");
  const bool streams = kind == "lines" || kind == "jsonl";
  if (found == "-" && streams) {
    if (Result<void> checked = check_stdin(job, pointer); !checked) return std::move(checked).error();
    return found;
  }
  std::string path = kind == "glob" ? pattern_from_owner(job, pointer, found) : job.path_from_owner(pointer, found);
  job.layers.put(pointer, path);
  return path;
}

/// With `call` args or kwargs an input must be a list or an object: checks what can be known now.
Result<void> check_call(const Resolving& job, const std::string& kind) {
  const std::string call = job.text("/call");
  if (job.spec.kind != JobKind::kFunction || call == "item" || kind == "jsonl") return {};
  const bool args = call == "args";
  const char* wanted = args ? "a list (its values are the arguments)" : "an object (its members are the arguments)";
  if (kind == "items") {
    const Json& items = *job.layers.find("/inputs/items");
    const auto bad = std::find_if(items.begin(), items.end(),
                                  [&](const Json& item) { return args ? !item.is_array() : !item.is_object(); });
    if (bad == items.end()) return {};
    return job.layers.error("/inputs/items/" + std::to_string(std::distance(items.begin(), bad)),
                            "found " + preview(*bad) + ", allowed with call " + call + ": " + wanted);
  }
  if (kind == "grid" && !args) return {};
  return job.layers.error("/call",
                          "found " + in_quotes(call) + ", but inputs of " + in_quotes(kind) +
                              " give no such values: " + "each must be " + wanted +
                              (kind == "grid" ? "\n  did you mean \"kwargs\"?" : "\n  did you mean \"item\"?"));
}

}  // namespace

std::string escape_pattern(const std::string& path) {
  std::string escaped;
  for (const char c : path) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string pattern_from_owner(const Resolving& job, const std::string& pointer, const std::string& pattern) {
  if (!pattern.empty() && pattern.front() == '/') return job.path_from_owner(pointer, pattern);
  const std::string folder = escape_pattern(job.path_from_owner(pointer, ""));
  return folder + (folder.empty() || folder.back() != '/' ? "/" : "") + pattern;
}

Result<void> resolve_inputs(Resolving& job) {
  if (job.layers.find("/inputs") == nullptr) return {};
  Result<std::string> kind = only_kind(job);
  if (!kind) return std::move(kind).error();
  job.spec.inputs_place = job.layers.error("/inputs/" + *kind, "").message;
  if (is_arrays(*kind)) return resolve_arrays(job, *kind);
  const Json& value = *job.layers.find("/inputs/" + *kind);
  if (Result<void> checked = check_call(job, *kind); !checked) return checked;
  InputSpec& inputs = job.spec.inputs;
  if (*kind == "items") {
    inputs = ItemsInput{std::make_shared<const Json>(value)};
    return {};
  }
  if (*kind == "grid") {
    inputs = GridInput{std::make_shared<const Json>(value)};
    return {};
  }
  if (*kind == "range") {
    Result<RangeInput> range = read_range(job, value);
    if (!range) return std::move(range).error();
    inputs = *range;
    return {};
  }
  Result<std::string> path = read_path(job, *kind);
  if (!path) return std::move(path).error();
  if (*kind == "lines") {
    inputs = LinesInput{std::move(*path)};
  } else if (*kind == "jsonl") {
    inputs = JsonlInput{std::move(*path)};
  } else {
    inputs = GlobInput{std::move(*path)};
  }
  return {};
}

}  // namespace mprun::job
