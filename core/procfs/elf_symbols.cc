#include "procfs/elf_symbols.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace mprun {
namespace {

constexpr std::size_t kMostSegments = 128;
constexpr std::size_t kMostDynamicEntries = 1024;
constexpr std::size_t kMostSlots = 1 << 16;
constexpr std::uint64_t kLargestImage = std::uint64_t{1} << 34U;
constexpr std::uint32_t kLongestChain = 4096;  ///< of symbols in one bucket: real ones have a handful
constexpr unsigned char kByteOrder = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;

std::uint32_t gnu_hash(std::string_view name) {
  std::uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

std::uint32_t sysv_hash(std::string_view name) {
  std::uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << 4U) + static_cast<unsigned char>(c);
    const std::uint32_t top = hash & 0xf0000000U;
    hash = (hash ^ (top >> 24U)) & ~top;
  }
  return hash;
}

bool is_ours(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == kByteOrder && (header.e_type == ET_EXEC || header.e_type == ET_DYN) &&
         header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phnum > 0 && header.e_phnum <= kMostSegments &&
         header.e_phoff < kLargestImage;
}

}  // namespace

std::optional<ElfImage> ElfImage::open(ProcessMemory* memory, std::uint64_t header) {
  ElfImage image(memory);
  if (!image.read_segments(header)) return std::nullopt;
  return image;
}

bool ElfImage::read_segments(std::uint64_t header) {
  const auto elf = memory_->read<Elf64_Ehdr>(header);
  if (!elf || !is_ours(*elf)) return false;
  std::vector<Elf64_Phdr> segments(elf->e_phnum);
  if (!memory_->read(header + elf->e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr))) return false;

  const Elf64_Phdr* dynamic = nullptr;
  std::uint64_t low = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t high = 0;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_DYNAMIC) dynamic = &segment;
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_vaddr > segment.p_vaddr + segment.p_memsz) return false;
    // The segments are in the order of their addresses; the first holds the ELF header, at offset 0 of the file.
    if (high == 0) bias_ = header - (segment.p_vaddr - segment.p_offset);
    low = std::min(low, segment.p_vaddr);
    high = std::max(high, segment.p_vaddr + segment.p_memsz);
  }
  if (dynamic == nullptr || low >= high || high - low > kLargestImage) return false;
  begin_ = low + bias_;
  end_ = high + bias_;
  return begin_ < end_ && read_dynamic(dynamic->p_vaddr + bias_, dynamic->p_memsz);
}

bool ElfImage::read_dynamic(std::uint64_t address, std::uint64_t size) {
  std::vector<Elf64_Dyn> entries(std::min<std::uint64_t>(size / sizeof(Elf64_Dyn), kMostDynamicEntries));
  if (entries.empty() || !memory_->read(address, entries.data(), entries.size() * sizeof(Elf64_Dyn))) return false;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_GNU_HASH) gnu_hash_ = located(entry.d_un.d_ptr);
    if (entry.d_tag == DT_HASH) hash_ = located(entry.d_un.d_ptr);
    if (entry.d_tag == DT_SYMTAB) symbols_ = located(entry.d_un.d_ptr);
    if (entry.d_tag == DT_STRTAB) strings_ = located(entry.d_un.d_ptr);
    if (entry.d_tag == DT_STRSZ) strings_size_ = entry.d_un.d_val;
    if (entry.d_tag == DT_JMPREL) slots_ = located(entry.d_un.d_ptr);
    if (entry.d_tag == DT_PLTRELSZ) slots_size_ = entry.d_un.d_val;
    if (entry.d_tag == DT_SYMENT && entry.d_un.d_val != sizeof(Elf64_Sym)) return false;
  }
  return (gnu_hash_ != 0 || hash_ != 0) && symbols_ != 0 && strings_ != 0;
}

// glibc's loader writes the final addresses into the dynamic section, musl's does not.
std::uint64_t ElfImage::located(std::uint64_t pointer) const {
  return pointer >= begin_ && pointer < end_ ? pointer : pointer + bias_;
}

std::optional<ElfSymbol> ElfImage::find(std::string_view name) {
  return gnu_hash_ != 0 ? find_gnu(name) : find_sysv(name);
}

std::optional<ElfSymbol> ElfImage::find_gnu(std::string_view name) {
  struct Header {
    std::uint32_t buckets, first_symbol, bloom_words, bloom_shift;
  };
  const auto header = memory_->read<Header>(gnu_hash_);
  if (!header || header->buckets == 0) return std::nullopt;
  const std::uint32_t hash = gnu_hash(name);
  const std::uint64_t buckets = gnu_hash_ + sizeof(Header) + std::uint64_t{header->bloom_words} * 8;
  const std::uint64_t chains = buckets + std::uint64_t{header->buckets} * 4;
  const auto first = memory_->read<std::uint32_t>(buckets + std::uint64_t{hash % header->buckets} * 4);
  if (!first || *first < header->first_symbol) return std::nullopt;  // 0: an empty bucket
  for (std::uint32_t i = *first; i - *first < kLongestChain; ++i) {
    const auto chained = memory_->read<std::uint32_t>(chains + std::uint64_t{i - header->first_symbol} * 4);
    if (!chained) return std::nullopt;
    if ((*chained | 1U) == (hash | 1U)) {
      if (auto found = symbol(i, name)) return found;
    }
    if ((*chained & 1U) != 0) break;  // the last of its bucket
  }
  return std::nullopt;
}

std::optional<ElfSymbol> ElfImage::find_sysv(std::string_view name) {
  struct Header {
    std::uint32_t buckets, chains;
  };
  const auto header = memory_->read<Header>(hash_);
  if (!header || header->buckets == 0) return std::nullopt;
  const std::uint64_t buckets = hash_ + sizeof(Header);
  const std::uint64_t chains = buckets + std::uint64_t{header->buckets} * 4;
  auto index = memory_->read<std::uint32_t>(buckets + std::uint64_t{sysv_hash(name) % header->buckets} * 4);
  for (std::uint32_t steps = 0; steps < kLongestChain; ++steps) {
    if (!index || *index == STN_UNDEF || *index >= header->chains) return std::nullopt;
    if (auto found = symbol(*index, name)) return found;
    index = memory_->read<std::uint32_t>(chains + std::uint64_t{*index} * 4);
  }
  return std::nullopt;
}

// One string may be the end of a longer one.
bool ElfImage::has_name(std::string_view name) {
  const auto strings = memory_->bytes(strings_, strings_size_);
  return strings && strings->find(std::string(name) + '\0') != std::string::npos;
}

bool ElfImage::has_called(std::span<const std::string_view> functions) {
  const auto strings = memory_->bytes(strings_, strings_size_);
  const auto may_be_used = [&](std::string_view function) {
    return strings->find(std::string(function) + '\0') != std::string::npos;
  };
  if (!strings || std::none_of(functions.begin(), functions.end(), may_be_used)) return false;
  std::vector<Elf64_Rela> slots(std::min<std::uint64_t>(slots_size_ / sizeof(Elf64_Rela), kMostSlots));
  if (slots.empty() || !memory_->read(slots_, slots.data(), slots.size() * sizeof(Elf64_Rela))) return false;
  bool is_lazy = false;
  bool is_called = false;
  for (const Elf64_Rela& slot : slots) {
    const auto symbol = memory_->read<Elf64_Sym>(symbols_ + ELF64_R_SYM(slot.r_info) * sizeof(Elf64_Sym));
    const auto target = memory_->read<std::uint64_t>(slot.r_offset + bias_);
    if (!symbol || !target || symbol->st_shndx != SHN_UNDEF || symbol->st_name >= strings->size()) continue;
    const bool is_bound = *target < begin_ || *target >= end_;
    const char* const name = strings->c_str() + symbol->st_name;
    is_lazy = is_lazy || !is_bound;
    is_called = is_called || (is_bound && std::find(functions.begin(), functions.end(), name) != functions.end());
  }
  return is_lazy && is_called;
}

std::optional<ElfSymbol> ElfImage::symbol(std::uint32_t index, std::string_view name) {
  const auto entry = memory_->read<Elf64_Sym>(symbols_ + std::uint64_t{index} * sizeof(Elf64_Sym));
  if (!entry || entry->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(entry->st_info) == STT_TLS) return std::nullopt;
  if (entry->st_name >= strings_size_ || strings_size_ - entry->st_name <= name.size()) return std::nullopt;
  const auto text = memory_->bytes(strings_ + entry->st_name, name.size() + 1);
  if (!text || text->compare(0, name.size(), name) != 0 || text->back() != '\0') return std::nullopt;
  const ElfSymbol found{entry->st_value + bias_, entry->st_size};
  if (found.address < begin_ || found.address >= end_ || found.size > end_ - found.address) return std::nullopt;
  return found;
}

}  // namespace mprun
