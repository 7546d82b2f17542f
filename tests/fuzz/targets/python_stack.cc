// The stacks of a Python with corrupt memory. The input is a list of changes to the memory of a small sound process:
// two threads, one with two frames, so that the readers get far.
#include "watch/stacks/python_stack.h"

#include <elf.h>

#include "fuzz_memory.h"
#include "fuzz_support.h"
#include "json/json_text.h"
#include "targets.h"
#include "watch/stacks/python_layout.h"

namespace mprun::fuzz {
namespace {

// Where things are, from kBase on.
constexpr std::uint64_t kBase = 0x10000;
constexpr std::uint64_t kDynamic = 0x100, kHash = 0x200, kSymbols = 0x240, kStrings = 0x300, kVersion = 0x3c0;
constexpr std::uint64_t kRuntime = 0x400, kCodeType = 0x900, kTextType = 0xa00, kBytesType = 0xb00;
constexpr std::uint64_t kInterpreter = 0xc00, kGil = 0xe80, kThread = 0xf00, kOtherThread = 0x1000, kCframe = 0x1100;
constexpr std::uint64_t kFrame = 0x1140, kOuterFrame = 0x11a0, kCode = 0x1200, kFile = 0x1300, kQualifiedName = 0x1380;
constexpr std::uint64_t kLines = 0x1400, kSize = 0x1500;
constexpr pid_t kPid = 7;

/// The memory while it is built.
class Image {
 public:
  explicit Image(unsigned minor) : bytes_(kSize, '\0'), layout_(*known_python_layout(minor)) {
    make_elf();
    put(kVersion, std::uint64_t{0x030002f0} | std::uint64_t{minor} << 16U);
    make_interpreter();
    make_code();
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  template <typename T>
  void put(std::uint64_t at, const T& value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void point(std::uint64_t at, std::uint64_t to) { put(at, kBase + to); }

  void make_elf() {
    Elf64_Ehdr header{};
    std::memcpy(static_cast<unsigned char*>(header.e_ident), ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    put(0, header);
    Elf64_Phdr load{};
    load.p_type = PT_LOAD;
    load.p_memsz = kSize;
    put(sizeof header, load);
    Elf64_Phdr dynamic{};
    dynamic.p_type = PT_DYNAMIC;
    dynamic.p_vaddr = kDynamic;
    dynamic.p_memsz = 5 * sizeof(Elf64_Dyn);
    put(sizeof header + sizeof load, dynamic);
    const std::array<std::pair<Elf64_Sxword, Elf64_Xword>, 4> entries{
        {{DT_HASH, kHash}, {DT_SYMTAB, kSymbols}, {DT_STRTAB, kStrings}, {DT_STRSZ, kVersion - kStrings}}};
    for (std::size_t i = 0; i < entries.size(); ++i) {
      Elf64_Dyn entry{};
      entry.d_tag = entries[i].first;
      entry.d_un.d_val = entries[i].second;
      put(kDynamic + i * sizeof entry, entry);
    }
    make_symbols();
  }

  void make_symbols() {
    const std::array<std::pair<std::string_view, std::uint64_t>, 5> symbols{{{"_PyRuntime", kRuntime},
                                                                             {"Py_Version", kVersion},
                                                                             {"PyCode_Type", kCodeType},
                                                                             {"PyUnicode_Type", kTextType},
                                                                             {"PyBytes_Type", kBytesType}}};
    const auto count = static_cast<std::uint32_t>(symbols.size());
    put(kHash, std::array<std::uint32_t, 3>{1, count + 1, 1});  // one bucket, whose chain goes through all of them
    std::uint64_t name_at = 1;
    for (std::uint32_t i = 1; i <= count; ++i) {
      const auto& [name, at] = symbols[i - 1];
      Elf64_Sym symbol{};
      symbol.st_name = static_cast<Elf64_Word>(name_at);
      symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
      symbol.st_shndx = 1;
      symbol.st_value = at;
      symbol.st_size = 64;
      put(kSymbols + i * sizeof symbol, symbol);
      bytes_.replace(kStrings + name_at, name.size(), name);
      name_at += name.size() + 1;
      put(kHash + 12 + i * sizeof i, i == count ? 0 : i + 1);
    }
  }

  void make_interpreter() {
    point(kRuntime + layout_.runtime.interpreters, kInterpreter);
    point(kInterpreter + layout_.interpreter.threads, kThread);
    if (layout_.gil_of_interpreter) point(kInterpreter + layout_.interpreter.gil, kGil);
    const std::uint64_t gil = layout_.gil_of_interpreter ? kGil : kRuntime + layout_.runtime.gil;
    point(gil + layout_.gil.last_holder, kThread);
    put(gil + layout_.gil.locked, 1);
    for (const std::uint64_t thread : {kThread, kOtherThread}) {
      point(thread + layout_.thread.interpreter, kInterpreter);
      put(thread + layout_.thread.native_id, std::uint64_t{thread == kThread ? 7U : 8U});
    }
    point(kThread + layout_.thread.next, kOtherThread);
    point(kThread + layout_.thread.frame, kCframe);
    point(kCframe + layout_.cframe_frame, kFrame);
    point(kFrame + layout_.frame.previous, kOuterFrame);
    for (const std::uint64_t frame : {kFrame, kOuterFrame}) {
      point(frame + layout_.frame.code, kCode);
      point(frame + layout_.frame.instruction, kCode + layout_.code.instructions + 4);
    }
  }

  void make_code() {
    constexpr std::uint64_t kType = 8, kLength = 16;  // PyObject.ob_type, PyVarObject.ob_size
    point(kCode + kType, kCodeType);
    put(kCode + kLength, std::uint64_t{8});
    put(kCode + layout_.code.first_line, 40);
    point(kCode + layout_.code.filename, kFile);
    point(kCode + layout_.code.qualified_name, kQualifiedName);
    point(kCode + layout_.code.line_table, kLines);
    for (const auto& [at, text] :
         {std::pair{kFile, std::string_view("train.py")}, std::pair{kQualifiedName, std::string_view("Model.fit")}}) {
      point(at + kType, kTextType);
      put(at + layout_.text.length, std::uint64_t{text.size()});
      put(at + layout_.text.state, std::uint32_t{1U << 2U | 32U | 64U});  // one byte a character, compact, ASCII
      bytes_.replace(at + layout_.text.ascii_data, text.size(), text);
    }
    constexpr std::string_view kTable = "\xd9\x01\xd9\x03\xe8\x02";
    point(kLines + kType, kBytesType);
    put(kLines + kLength, std::uint64_t{kTable.size()});
    bytes_.replace(kLines + layout_.text.bytes_data, kTable.size(), kTable);
  }

  std::string bytes_;
  const PythonLayout& layout_;
};

/// A change: a place, a kind, and what to write there.
std::string changed(std::string bytes, Bytes changes) {
  while (!changes.at_end()) {
    const std::size_t place = changes.take<std::uint16_t>() % kSize;
    const auto kind = changes.take<std::uint8_t>();
    std::string value;
    if (kind % 4 == 0) {  // a pointer to something that exists
      const std::uint64_t pointer = kBase + changes.take<std::uint16_t>() % (kSize + 64);
      value.assign(reinterpret_cast<const char*>(&pointer), sizeof pointer);
    } else if (kind % 4 == 1) {
      value = changes.take(8);
    } else if (kind % 4 == 2) {
      value = changes.take(1);
    } else {
      value = changes.take(4);
    }
    bytes.replace(place, std::min(value.size(), kSize - place), value, 0, std::min(value.size(), kSize - place));
  }
  return bytes;
}

bool is_utf8(std::string_view text) {
  const auto high = [](std::string_view of) {
    return std::count_if(of.begin(), of.end(), [](char c) { return (c & 0x80) != 0; });
  };
  std::string json;
  append_json_string(&json, text);  // which escapes what is not UTF-8
  return high(json) == high(text);
}

void check(const PythonStacks& stacks) {
  require(stacks.threads.size() <= 1000 && stacks.gils.size() <= 64, "threads and interpreters are bounded");
  for (const PythonThread& thread : stacks.threads) {
    require(thread.tid == kPid || thread.tid == kPid + 1, "a thread is one of the process's");
    require(thread.frames.size() <= std::size_t{1000} * 256, "frames are bounded");
    for (const PythonFrame& frame : thread.frames) {
      require(frame.line >= 0, "a line is counted from 1, or 0");
      require(frame.file.size() <= std::size_t{4} * 4096 + 3 && frame.function.size() <= 4 * 512 + 3,
              "names are bounded");
      require(is_utf8(frame.file) && is_utf8(frame.function), "names are UTF-8");
    }
  }
}

}  // namespace

void python_stack(std::string_view input) {
  static const std::array<Image, 2> images{Image(11), Image(12)};
  static const std::vector<Mapping> mappings{
      {kBase, kBase + kSize, 0, true, true, false, false, 1, 1, "/usr/bin/python3"}};
  Bytes bytes(input);
  const auto which = bytes.take<std::uint8_t>();
  FuzzMemory proc(kBase, changed(images[which % 2].bytes(), bytes));
  proc.links["7/exe"] = "/usr/bin/python3";
  proc.folders["7/task"] = {"7", "8"};
  const PythonStacks stacks = read_python_stacks(&proc, kPid, mappings);
  require(!input.empty() || (stacks.threads.size() == 2 && stacks.threads[0].frames.size() == 2 &&
                             stacks.threads[0].frames[0].file == "train.py" && stacks.gils.size() == 1),
          "a sound process is read");
  check(stacks);
}

}  // namespace mprun::fuzz
