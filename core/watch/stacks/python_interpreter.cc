#include "watch/stacks/python_interpreter.h"

#include "procfs/text_scan.h"

namespace mprun {
namespace {

constexpr std::size_t kMostImages = 16;  ///< the program, and mappings of files named libpython

/// The program itself first: if it has a copy of a library's variable, that one counts.
std::vector<ElfImage> possible_images(const std::optional<std::string>& program, const std::vector<Mapping>& mappings,
                                      ProcessMemory* memory) {
  std::vector<ElfImage> images;
  for (const bool wants_program : {true, false}) {
    for (const Mapping& mapping : mappings) {
      if (mapping.offset != 0 || !mapping.readable || mapping.path.empty() || images.size() >= kMostImages) continue;
      const bool is_program = program && mapping.path == *program;
      const bool is_library = mapping.path.find("libpython", mapping.path.rfind('/') + 1) != std::string::npos;
      if (is_program != wants_program || !(is_program || is_library)) continue;
      if (const auto image = ElfImage::open(memory, mapping.begin)) images.push_back(*image);
    }
  }
  return images;
}

std::uint64_t address_of(std::string_view name, std::vector<ElfImage>* images) {
  for (ElfImage& image : *images) {
    if (const auto symbol = image.find(name)) return symbol->address;
  }
  return 0;
}

/// "3.11.2" of a PY_VERSION_HEX.
std::string version_text(std::uint64_t hex) {
  return std::to_string(hex >> 24U) + "." + std::to_string((hex >> 16U) & 255U) + "." +
         std::to_string((hex >> 8U) & 255U);
}

// N of a file named "python3.N" or "libpython3.N.so.1.0"; 0: it is no such file.
unsigned minor_of_file(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.starts_with("lib")) name.remove_prefix(3);
  constexpr std::string_view kPython = "python3.";
  if (!name.starts_with(kPython)) return 0;
  TextScan scan(name.substr(kPython.size()));
  unsigned minor = 0;
  return scan.number(&minor) ? minor : 0;
}

// Py_Version came with 3.11. Before that, only the name of the file shows the version.
bool find_version(const std::string& program, const std::vector<Mapping>& mappings, std::vector<ElfImage>* images,
                  ProcessMemory* memory, PythonInterpreter* python, std::string* reason) {
  constexpr unsigned kOldest = 9, kFirstWithVersion = 11;
  if (const auto version = memory->read<std::uint64_t>(address_of("Py_Version", images))) {
    python->minor = (*version >> 16U) & 255U;
    python->version = version_text(*version);
    *reason = "Python " + python->version + " is not known to mprun";
    return *version >> 24U == 3;
  }
  python->minor = minor_of_file(program);
  for (const Mapping& mapping : mappings) {
    if (python->minor == 0) python->minor = minor_of_file(mapping.path);
  }
  python->version = "3." + std::to_string(python->minor);
  *reason = "a Python before 3.9, or whose version its file does not show, is not known to mprun";
  return python->minor >= kOldest && python->minor < kFirstWithVersion;
}

std::optional<PythonLayout> find_layout(unsigned minor, const ElfSymbol& runtime, ProcessMemory* memory,
                                        std::string* reason) {
  const std::string name = "Python 3." + std::to_string(minor);
  if (const PythonLayout* layout = known_python_layout(minor)) return *layout;
  *reason = name + " is not known to mprun";
  if (runtime.size < kPythonDescriptionSize) return std::nullopt;
  const auto description = memory->bytes(runtime.address, kPythonDescriptionSize);
  if (!description) return std::nullopt;
  auto layout = described_python_layout(minor, *description);
  if (layout) reason->clear();
  return layout;
}

}  // namespace

std::optional<PythonInterpreter> find_python(ProcSource* proc, pid_t pid, const std::vector<Mapping>& mappings,
                                             ProcessMemory* memory, std::string* reason) {
  std::vector<ElfImage> images = possible_images(proc->link(std::to_string(pid) + "/exe"), mappings, memory);
  PythonInterpreter python;
  for (ElfImage& image : images) {
    const auto runtime = image.find("_PyRuntime");
    if (!runtime) continue;
    python.runtime = *runtime;
    break;
  }
  if (python.runtime.address == 0) return std::nullopt;

  const std::string program = proc->link(std::to_string(pid) + "/exe").value_or("");
  if (!find_version(program, mappings, &images, memory, &python, reason)) return std::nullopt;
  const auto layout = find_layout(python.minor, python.runtime, memory, reason);
  if (!layout) return std::nullopt;

  python.layout = *layout;
  python.types = {address_of("PyCode_Type", &images), address_of("PyUnicode_Type", &images),
                  address_of("PyBytes_Type", &images), address_of("PyFloat_Type", &images)};
  *reason = "its Python exports no types";
  if (python.types.code == 0 || python.types.unicode == 0 || python.types.bytes == 0) return std::nullopt;
  if (python.layout.frame_is_object) {
    python.types.function = address_of("PyFunction_Type", &images);
    python.types.wrappers = {address_of("PyStaticMethod_Type", &images), address_of("PyClassMethod_Type", &images),
                             address_of("PyProperty_Type", &images)};
  }
  reason->clear();
  return python;
}

}  // namespace mprun
