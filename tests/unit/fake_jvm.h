// A made-up HotSpot virtual machine. fake_jvm.cc is its libjvm.so, with a table of these structures; the tests fill
// them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

struct FakeOsThread {
  std::uint64_t before;
  pid_t thread_id;
};
struct FakeMonitor {
  std::uint64_t header;
  const void* owner;
};
struct FakeJavaThread {
  const void* kind;  ///< its table of virtual functions
  FakeOsThread* os;
  FakeMonitor *pending, *waiting;
  std::int32_t state;
  std::uint64_t anchor, last_java_sp;
  const char* stack_base;
  std::size_t stack_size;
};
struct FakeThreadsList {
  std::uint32_t length;
  FakeJavaThread** threads;
};
struct FakeSymbol {
  std::uint16_t length;
  char body[62];
};
struct FakeKlass {
  FakeSymbol* name;
  FakeKlass* next;
};
struct FakeLoaderData {
  const void* loader;
  FakeKlass* klasses;
  FakeLoaderData* next;
};
