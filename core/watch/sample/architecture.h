// What the watch knows of the processor that it was built for, besides the numbers of system calls
// (syscall_numbers.h): instructions, registers, and where glibc keeps what. On any other processor nothing is proved.
#pragma once

#include <elf.h>
#include <sys/user.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mprun::architecture {

/// struct pthread of glibc's nptl/descr.h. pthread_t points to it; `self` is the offset of a pointer to `self_target`,
/// `join_state` that of what pthread_join() waits for since 2.43 (0: not known).
struct PthreadLayout {
  std::uint64_t tid, self, self_target, join_state;
};

#if defined(__x86_64__)

inline constexpr bool kIsKnown = true;
inline constexpr std::uint16_t kElfMachine = EM_X86_64;

/// The instruction before the program counter of a thread that is in a system call.
inline constexpr std::string_view kSystemCall{"\x0f\x05", 2};  // syscall

/// How __lll_lock_wait() of glibc calls futex(2), in this many bytes, which end with kSystemCall. It sets the number of
/// the call itself, unlike the callers of syscall(). __lll_lock_wait_private() sets a constant operation.
inline constexpr std::size_t kLockWaitSize = 20;
inline constexpr std::string_view kSetFutex{"\xb8\xca\0\0\0", 5};                       // mov $202,%eax
inline constexpr std::array kSetPrivateWait = {std::string_view{"\xbe\x80\0\0\0", 5}};  // mov $0x80,%esi

/// tcbhead_t.self is the second of the union at the start (sysdeps/x86_64/nptl/tls.h).
inline constexpr PthreadLayout kPthread{.tid = 720, .self = 16, .self_target = 0, .join_state = 1576};

/// Where the kernel's registers have those of DWARF: rax rdx rcx rbx rsi rdi rbp rsp r8 ... r15 rip.
inline constexpr std::array kDwarfRegisters = {
    offsetof(user_regs_struct, rax), offsetof(user_regs_struct, rdx), offsetof(user_regs_struct, rcx),
    offsetof(user_regs_struct, rbx), offsetof(user_regs_struct, rsi), offsetof(user_regs_struct, rdi),
    offsetof(user_regs_struct, rbp), offsetof(user_regs_struct, rsp), offsetof(user_regs_struct, r8),
    offsetof(user_regs_struct, r9),  offsetof(user_regs_struct, r10), offsetof(user_regs_struct, r11),
    offsetof(user_regs_struct, r12), offsetof(user_regs_struct, r13), offsetof(user_regs_struct, r14),
    offsetof(user_regs_struct, r15), offsetof(user_regs_struct, rip)};
inline constexpr int kStackPointer = 7, kFramePointer = 6;

/// The bits that hold an address of code, in a return address on the stack.
inline constexpr std::uint64_t kCodeAddress = ~std::uint64_t{0};

#elif defined(__aarch64__)

inline constexpr bool kIsKnown = true;
inline constexpr std::uint16_t kElfMachine = EM_AARCH64;

inline constexpr std::string_view kSystemCall{"\x01\0\0\xd4", 4};  // svc #0

inline constexpr std::size_t kLockWaitSize = 32;
inline constexpr std::string_view kSetFutex{"\x48\x0c\x80\xd2", 4};                       // mov x8, #98
inline constexpr std::array kSetPrivateWait = {std::string_view{"\x01\x10\x80\xd2", 4},   // mov x1, #0x80
                                               std::string_view{"\x01\x10\x80\x52", 4}};  // mov w1, #0x80

/// The thread pointer is behind the structure, which has no pointer to itself. robust_head.list points to itself as
/// long as the thread holds no robust mutex.
inline constexpr PthreadLayout kPthread{.tid = 208, .self = 224, .self_target = 224, .join_state = 0};

/// x0 ... x30 sp pc, which is the order of the kernel as well.
inline constexpr auto kDwarfRegisters = [] {
  std::array<std::size_t, 33> offsets{};
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = i * sizeof(std::uint64_t);
  return offsets;
}();
static_assert(offsetof(user_regs_struct, sp) == kDwarfRegisters[31] &&
              offsetof(user_regs_struct, pc) == kDwarfRegisters[32]);
inline constexpr int kStackPointer = 31, kFramePointer = 29;

/// Code built with -mbranch-protection signs its return addresses in the other bits (pointer authentication).
inline constexpr std::uint64_t kCodeAddress = (std::uint64_t{1} << 48) - 1;

#else

inline constexpr bool kIsKnown = false;
inline constexpr std::uint16_t kElfMachine = EM_NONE;
inline constexpr std::string_view kSystemCall, kSetFutex;
inline constexpr std::size_t kLockWaitSize = 0;
inline constexpr std::array<std::string_view, 0> kSetPrivateWait;
inline constexpr PthreadLayout kPthread{};
inline constexpr std::array<std::size_t, 1> kDwarfRegisters{};
inline constexpr int kStackPointer = 0, kFramePointer = 0;
inline constexpr std::uint64_t kCodeAddress = ~std::uint64_t{0};

#endif

/// The program counter is the last of kDwarfRegisters.
inline constexpr int kProgramCounter = static_cast<int>(kDwarfRegisters.size()) - 1;

}  // namespace mprun::architecture
