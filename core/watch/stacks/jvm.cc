#include "watch/stacks/jvm.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "procfs/elf_symbols.h"

namespace mprun {
namespace {

constexpr std::size_t kMostOfJvm = std::size_t{8} << 20U;
constexpr std::size_t kMostVmFields = 4096, kMostJavaThreads = 4096, kMostBootClasses = 20000,
                      kMostClassLoaders = 10000;
constexpr std::int32_t kThreadBlocked = 10;  // _thread_blocked of utilities/globalDefinitions.hpp
constexpr std::size_t kLongestVmName = 40;   // of the types and fields that are wanted, and of the classes

const Mapping* find_libjvm(const std::vector<Mapping>& maps) {
  const auto found = std::find_if(maps.begin(), maps.end(), [](const Mapping& mapping) {
    return mapping.offset == 0 && mapping.path.ends_with("/libjvm.so");
  });
  return found == maps.end() ? nullptr : &*found;
}

// The table that jhsdb reads: for each field its offset, or its address if it is static.
class VmFields {
 public:
  static std::optional<VmFields> read(ProcessMemory* memory, std::uint64_t library) {
    auto image = ElfImage::open(memory, library);
    if (!image) return std::nullopt;
    VmFields fields(memory);
    const auto read_value = [&](std::string_view name, std::uint64_t* value) {
      const auto symbol = image->find(name);
      return symbol && memory->read(symbol->address, value, sizeof *value);
    };
    Layout& layout = fields.layout_;
    const bool is_known = read_value("gHotSpotVMStructs", &layout.table) &&
                          read_value("gHotSpotVMStructEntryArrayStride", &layout.stride) &&
                          read_value("gHotSpotVMStructEntryTypeNameOffset", &layout.type) &&
                          read_value("gHotSpotVMStructEntryFieldNameOffset", &layout.field) &&
                          read_value("gHotSpotVMStructEntryIsStaticOffset", &layout.is_static) &&
                          read_value("gHotSpotVMStructEntryOffsetOffset", &layout.offset) &&
                          read_value("gHotSpotVMStructEntryAddressOffset", &layout.address);
    if (!is_known || !fields.read_table()) return std::nullopt;
    return fields;
  }

  /// Of the first of the names ("Type::_field") that the table has: fields have moved between types. nullopt: none.
  [[nodiscard]] std::optional<std::uint64_t> find(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (const auto it = places_.find(name); it != places_.end()) return it->second;
    }
    return std::nullopt;
  }

 private:
  struct Layout {
    std::uint64_t table = 0, stride = 0;
    std::uint64_t type = 0, field = 0, is_static = 0, offset = 0, address = 0;  // in an entry
  };

  explicit VmFields(ProcessMemory* memory) : memory_(memory) {}

  static bool is_wanted(std::string_view type) {
    constexpr std::array<std::string_view, 11> kTypes{
        "ThreadsSMRSupport",    "ThreadsList",     "Thread",        "JavaThread", "JavaFrameAnchor", "OSThread",
        "ClassLoaderDataGraph", "ClassLoaderData", "ObjectMonitor", "Klass",      "Symbol"};
    return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
  }

  // An entry without names ends the table.
  bool read_table() {
    for (std::size_t i = 0; i < kMostVmFields; ++i) {
      const std::uint64_t entry = layout_.table + i * layout_.stride;
      const auto type = string_at(entry + layout_.type);
      if (!type || type->empty()) return type.has_value();
      if (is_wanted(*type) && !read_field(entry, *type)) return false;
    }
    return false;
  }

  bool read_field(std::uint64_t entry, const std::string& type) {
    const auto name = string_at(entry + layout_.field);
    const auto is_static = memory_->read<std::uint32_t>(entry + layout_.is_static);
    if (!name || !is_static) return false;
    const auto place = memory_->read<std::uint64_t>(entry + (*is_static != 0 ? layout_.address : layout_.offset));
    if (place) places_[type + "::" + *name] = *place;
    return place.has_value();
  }

  // The string that a pointer leads to, cut to the length of what is wanted; empty: the pointer is null.
  std::optional<std::string> string_at(std::uint64_t pointer) {
    const auto address = memory_->read<std::uint64_t>(pointer);
    if (!address || *address == 0) return address ? std::optional(std::string()) : std::nullopt;
    const auto [it, is_new] = strings_.try_emplace(*address);
    if (is_new) {
      const auto text = memory_->bytes(*address, kLongestVmName);
      if (!text) return std::nullopt;
      it->second = text->substr(0, text->find('\0'));
    }
    return it->second;
  }

  ProcessMemory* memory_;
  Layout layout_;
  std::map<std::uint64_t, std::string> strings_;  // by address: many entries have the same type's name
  std::map<std::string, std::uint64_t> places_;
};

// A JavaThread of HotSpot.
struct RawThread {
  pid_t tid = 0;
  std::uint64_t address = 0, kind = 0;  // the kind: its table of virtual functions, one for each class
  std::uint64_t pending_monitor = 0, waiting_monitor = 0;
  bool is_blocked = false, is_in_java = false;   // waits in the machine; was called from Java
  std::uint64_t stack_base = 0, stack_size = 0;  // the stack ends at its base
};

class JvmReader {
 public:
  JvmReader(ProcSource* proc, pid_t pid, std::uint64_t library)
      : proc_(proc), pid_(pid), memory_(proc, pid, kMostOfJvm), fields_(VmFields::read(&memory_, library)) {}

  std::optional<Jvm> read() {
    if (!read_threads()) return std::nullopt;
    const std::uint64_t plain = kind_of_plain_threads();
    if (plain == 0) return std::nullopt;
    Jvm jvm;
    for (const RawThread& thread : threads_) {
      JvmThread& known = jvm.threads[thread.tid];
      known.is_helper = thread.kind != plain;
      known.enters_monitor = thread.pending_monitor != 0;
      known.waits_for_notify = thread.waiting_monitor != 0;
      const bool in_monitor = known.enters_monitor || known.waits_for_notify;
      known.is_parked = thread.is_blocked && thread.is_in_java && !in_monitor;
      known.has_returned = thread.is_blocked && !thread.is_in_java && thread.tid == first_thread();
      if (known.enters_monitor) known.owner = owner_of(thread.pending_monitor);
    }
    return jvm;
  }

  // Whether the loader of the JDK's own classes, which alone has no loader in Java, has loaded none of these. It has
  // several lists: hidden classes have their own.
  bool lacks_classes(const std::set<std::string>& names) {
    auto data = variable<std::uint64_t>("ClassLoaderDataGraph::_head");
    for (std::size_t i = 0; data && i < kMostClassLoaders; ++i) {
      if (*data == 0) return true;
      const auto loader = member<std::uint64_t>(*data, {"ClassLoaderData::_class_loader"});
      const auto first = member<std::uint64_t>(*data, {"ClassLoaderData::_klasses"});
      if (!loader || !first || (*loader == 0 && !lacks_classes_from(*first, names))) return false;
      data = member<std::uint64_t>(*data, {"ClassLoaderData::_next"});
    }
    return false;
  }

 private:
  template <typename T>
  std::optional<T> member(std::uint64_t object, std::initializer_list<const char*> names) {
    const auto offset = fields_ ? fields_->find(names) : std::nullopt;
    return offset ? memory_.read<T>(object + *offset) : std::nullopt;
  }
  template <typename T>
  std::optional<T> variable(const char* name) {
    return member<T>(0, {name});
  }

  bool read_threads() {
    const auto list = variable<std::uint64_t>("ThreadsSMRSupport::_java_thread_list");
    const auto count = list ? member<std::uint32_t>(*list, {"ThreadsList::_length"}) : std::nullopt;
    const auto array = list ? member<std::uint64_t>(*list, {"ThreadsList::_threads"}) : std::nullopt;
    if (!count || !array || *count > kMostJavaThreads) return false;
    for (std::uint32_t i = 0; i < *count; ++i) {
      const auto address = memory_.read<std::uint64_t>(*array + i * sizeof(std::uint64_t));
      if (!address || !read_thread(*address)) return false;
    }
    return true;
  }

  bool read_thread(std::uint64_t address) {
    RawThread thread;
    thread.address = address;
    const auto kind = memory_.read<std::uint64_t>(address);
    const auto os = member<std::uint64_t>(address, {"JavaThread::_osthread", "Thread::_osthread"});
    const auto tid = os ? member<pid_t>(*os, {"OSThread::_thread_id"}) : std::nullopt;
    if (!kind || !tid || !read_waits(&thread) || !read_stack(&thread)) return false;
    thread.kind = *kind;
    thread.tid = *tid;
    threads_.push_back(thread);
    return true;
  }

  bool read_waits(RawThread* thread) {
    const std::uint64_t address = thread->address;
    const auto pending =
        member<std::uint64_t>(address, {"JavaThread::_current_pending_monitor", "Thread::_current_pending_monitor"});
    const auto waiting =
        member<std::uint64_t>(address, {"JavaThread::_current_waiting_monitor", "Thread::_current_waiting_monitor"});
    const auto state = member<std::int32_t>(address, {"JavaThread::_thread_state"});
    if (!pending || !waiting || !state) return false;
    thread->pending_monitor = *pending;
    thread->waiting_monitor = *waiting;
    thread->is_blocked = *state == kThreadBlocked;
    return true;
  }

  bool read_stack(RawThread* thread) {
    const std::uint64_t address = thread->address;
    const auto base = member<std::uint64_t>(address, {"JavaThread::_stack_base", "Thread::_stack_base"});
    const auto size = member<std::uint64_t>(address, {"JavaThread::_stack_size", "Thread::_stack_size"});
    const auto anchor = fields_->find({"JavaThread::_anchor"});
    const auto last =
        anchor ? member<std::uint64_t>(address + *anchor, {"JavaFrameAnchor::_last_Java_sp"}) : std::nullopt;
    if (!base || !size || !last) return false;
    thread->stack_base = *base;
    thread->stack_size = *size;
    thread->is_in_java = *last != 0;
    return true;
  }

  // All threads of programs have the same class, and so has the machine's "Reference Handler". Its helpers have classes
  // of their own: CompilerThread, ServiceThread, MonitorDeflationThread, NotificationThread.
  [[nodiscard]] std::uint64_t kind_of_plain_threads() const {
    for (const RawThread& thread : threads_) {
      const auto name = proc_->read(std::to_string(pid_) + "/task/" + std::to_string(thread.tid) + "/comm");
      if (name == "Reference Handl\n") return thread.kind;
    }
    return 0;
  }

  // The launcher starts a thread for main, which becomes a Java thread before all others.
  [[nodiscard]] pid_t first_thread() const {
    return std::min_element(threads_.begin(), threads_.end(),
                            [](const RawThread& one, const RawThread& other) { return one.tid < other.tid; })
        ->tid;
  }

  // The owner is a thread, or a place on its stack if it had the lock before others came.
  pid_t owner_of(std::uint64_t monitor) {
    const auto owner = member<std::uint64_t>(monitor, {"ObjectMonitor::_owner"});
    if (!owner) return 0;
    for (const RawThread& thread : threads_) {
      const bool on_stack = *owner < thread.stack_base && *owner >= thread.stack_base - thread.stack_size;
      if (*owner == thread.address || on_stack) return thread.tid;
    }
    return 0;
  }

  bool lacks_classes_from(std::uint64_t first, const std::set<std::string>& names) {
    std::optional<std::uint64_t> klass = first;
    for (std::size_t i = 0; klass && i < kMostBootClasses; ++i) {
      if (*klass == 0) return true;
      const auto symbol = member<std::uint64_t>(*klass, {"Klass::_name"});
      const auto name = symbol ? text_of(*symbol) : std::nullopt;
      if (!name || names.count(*name) != 0) return false;
      klass = member<std::uint64_t>(*klass, {"Klass::_next_link"});
    }
    return false;
  }

  std::optional<std::string> text_of(std::uint64_t symbol) {
    const auto length = member<std::uint16_t>(symbol, {"Symbol::_length"});
    const auto body = fields_ ? fields_->find({"Symbol::_body[0]"}) : std::nullopt;
    if (!length || !body) return std::nullopt;
    if (*length > kLongestVmName) return std::string();  // none that is sought
    return memory_.bytes(symbol + *body, *length);
  }

  ProcSource* proc_;
  pid_t pid_;
  ProcessMemory memory_;
  std::optional<VmFields> fields_;
  std::vector<RawThread> threads_;
};

}  // namespace

std::optional<Jvm> read_jvm(ProcSource* proc, pid_t pid, const std::vector<Mapping>& maps) {
  const Mapping* library = find_libjvm(maps);
  return library == nullptr ? std::nullopt : JvmReader(proc, pid, library->begin).read();
}

// A program gets at them only by these classes: Runtime.addShutdownHook() uses the one
// (src/java.base/share/classes/java/lang/Runtime.java), the other is the interface to signals
// (src/jdk.unsupported/share/classes/sun/misc/Signal.java).
bool jvm_only_ends(ProcSource* proc, pid_t pid, const std::vector<Mapping>& maps) {
  const Mapping* library = find_libjvm(maps);
  return library != nullptr &&
         JvmReader(proc, pid, library->begin).lacks_classes({"java/lang/ApplicationShutdownHooks", "sun/misc/Signal"});
}

}  // namespace mprun
