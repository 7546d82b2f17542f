#include "fake_jvm.h"

namespace {

// VMStructEntry of HotSpot's runtime/vmStructs.hpp.
struct Entry {
  const char *type, *field, *kind;
  std::int32_t is_static;
  std::uint64_t offset;
  void* address;
};

}  // namespace

extern "C" {
FakeThreadsList* fake_threads = nullptr;
FakeLoaderData* fake_loaders = nullptr;

Entry fake_entries[] = {
    {"Universe", "_narrow_oop", "int", 0, 4, nullptr},
    {"ThreadsSMRSupport", "_java_thread_list", "ThreadsList*", 1, 0, &fake_threads},
    {"ThreadsList", "_length", "uint", 0, offsetof(FakeThreadsList, length), nullptr},
    {"ThreadsList", "_threads", "JavaThread**", 0, offsetof(FakeThreadsList, threads), nullptr},
    {"JavaThread", "_osthread", "OSThread*", 0, offsetof(FakeJavaThread, os), nullptr},
    {"JavaThread", "_current_pending_monitor", "", 0, offsetof(FakeJavaThread, pending), nullptr},
    {"JavaThread", "_current_waiting_monitor", "", 0, offsetof(FakeJavaThread, waiting), nullptr},
    {"JavaThread", "_thread_state", "", 0, offsetof(FakeJavaThread, state), nullptr},
    {"JavaThread", "_anchor", "", 0, offsetof(FakeJavaThread, anchor), nullptr},
    {"JavaThread", "_stack_base", "", 0, offsetof(FakeJavaThread, stack_base), nullptr},
    {"JavaThread", "_stack_size", "", 0, offsetof(FakeJavaThread, stack_size), nullptr},
    {"JavaFrameAnchor", "_last_Java_sp", "", 0, sizeof(std::uint64_t), nullptr},
    {"OSThread", "_thread_id", "", 0, offsetof(FakeOsThread, thread_id), nullptr},
    {"ObjectMonitor", "_owner", "", 0, offsetof(FakeMonitor, owner), nullptr},
    {"ClassLoaderDataGraph", "_head", "", 1, 0, &fake_loaders},
    {"ClassLoaderData", "_class_loader", "", 0, offsetof(FakeLoaderData, loader), nullptr},
    {"ClassLoaderData", "_klasses", "", 0, offsetof(FakeLoaderData, klasses), nullptr},
    {"ClassLoaderData", "_next", "", 0, offsetof(FakeLoaderData, next), nullptr},
    {"Klass", "_name", "Symbol*", 0, offsetof(FakeKlass, name), nullptr},
    {"Klass", "_next_link", "Klass*", 0, offsetof(FakeKlass, next), nullptr},
    {"Symbol", "_length", "u2", 0, offsetof(FakeSymbol, length), nullptr},
    {"Symbol", "_body[0]", "u1", 0, offsetof(FakeSymbol, body), nullptr},
    {nullptr, nullptr, nullptr, 0, 0, nullptr},
};

// libjvm.so exports these as variables; the table may be moved, so a pointer leads to it.
Entry* gHotSpotVMStructs = fake_entries;
std::uint64_t gHotSpotVMStructEntryArrayStride = sizeof(Entry);
std::uint64_t gHotSpotVMStructEntryTypeNameOffset = offsetof(Entry, type);
std::uint64_t gHotSpotVMStructEntryFieldNameOffset = offsetof(Entry, field);
std::uint64_t gHotSpotVMStructEntryIsStaticOffset = offsetof(Entry, is_static);
std::uint64_t gHotSpotVMStructEntryOffsetOffset = offsetof(Entry, offset);
std::uint64_t gHotSpotVMStructEntryAddressOffset = offsetof(Entry, address);
}
