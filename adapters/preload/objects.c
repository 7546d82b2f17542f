/* The loaded shared objects and the symbols they define, read from their own tables: dlopen() and dlsym() would wait
 * while another thread loads an object, and would not see objects that were opened RTLD_LOCAL. */
#include <dlfcn.h>
#include <string.h>

#include "preload.h"

struct walk {
  bool (*visit)(const struct loaded_object* object, void* data);
  void* data;
};

static int visit_one(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  const struct walk* walk = data;
  const struct loaded_object object = {info->dlpi_name != NULL ? info->dlpi_name : "", info->dlpi_addr, info->dlpi_phdr,
                                       info->dlpi_phnum, info->dlpi_tls_modid};
  return walk->visit(&object, walk->data) ? 0 : 1;
}

void each_object(bool (*visit)(const struct loaded_object* object, void* data), void* data) {
  struct walk walk = {visit, data};
  dl_iterate_phdr(visit_one, &walk);
}

static int read_generation(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  *(uint64_t*)data = info->dlpi_adds + info->dlpi_subs;
  return 1;
}

uint64_t objects_generation(void) {
  uint64_t generation = 0;
  dl_iterate_phdr(read_generation, &generation);
  return generation;
}

/* The ABI's own access to a variable: dlpi_tls_data is NULL where all code uses the initial-exec model. */
struct tls_index {
  unsigned long module, offset;
};
extern void* __tls_get_addr(struct tls_index* index);  // NOLINT(bugprone-reserved-identifier): the ABI's name

void* find_thread_local_data(const struct loaded_object* object) {
  struct tls_index index = {object->thread_local_module, 0};
  return index.module != 0 ? __tls_get_addr(&index) : NULL;
}

void reset_thread_local_data(const struct loaded_object* object, void* data) {
  for (size_t i = 0; i < object->header_count; ++i) {
    const ElfW(Phdr)* header = &object->headers[i];
    if (header->p_type != PT_TLS) continue;
    memcpy(data, (const void*)(object->base + header->p_vaddr), header->p_filesz);
    memset((char*)data + header->p_filesz, 0, header->p_memsz - header->p_filesz);
  }
}

bool object_holds(const struct loaded_object* object, const void* address) {
  for (size_t i = 0; i < object->header_count; ++i) {
    const ElfW(Phdr)* header = &object->headers[i];
    const ElfW(Addr) begin = object->base + header->p_vaddr;
    const ElfW(Addr) at = (ElfW(Addr))address;
    if (header->p_type == PT_LOAD && at >= begin && at - begin < header->p_memsz) return true;
  }
  return false;
}

struct tables {
  const ElfW(Sym) * symbols;
  const char* strings;
  const uint32_t* hash; /* DT_GNU_HASH */
};

static bool find_tables(const struct loaded_object* object, struct tables* tables) {
  const ElfW(Dyn)* entry = NULL;
  for (size_t i = 0; i < object->header_count; ++i) {
    if (object->headers[i].p_type == PT_DYNAMIC) entry = (const void*)(object->base + object->headers[i].p_vaddr);
  }
  *tables = (struct tables){NULL, NULL, NULL};
  for (; entry != NULL && entry->d_tag != DT_NULL; ++entry) {
    /* glibc turns these into addresses while loading, except where the section may not be written (the vDSO). */
    const ElfW(Addr) address = entry->d_un.d_ptr >= object->base ? entry->d_un.d_ptr : object->base + entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) tables->symbols = (const void*)address;
    if (entry->d_tag == DT_STRTAB) tables->strings = (const void*)address;
    if (entry->d_tag == DT_GNU_HASH) tables->hash = (const void*)address;
  }
  return tables->symbols != NULL && tables->strings != NULL && tables->hash != NULL;
}

static uint32_t gnu_hash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + (unsigned char)*name;
  return hash;
}

void* find_symbol(const struct loaded_object* object, const char* name) {
  struct tables tables;
  if (!find_tables(object, &tables)) return NULL;
  const uint32_t bucket_count = tables.hash[0], first = tables.hash[1], bloom_words = tables.hash[2];
  const uint32_t* buckets = tables.hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* chain = buckets + bucket_count;
  const uint32_t hash = gnu_hash(name);
  uint32_t index = bucket_count != 0 ? buckets[hash % bucket_count] : 0;
  if (index < first) return NULL;
  for (;; ++index) {
    const ElfW(Sym)* symbol = &tables.symbols[index];
    const bool same = (chain[index - first] | 1) == (hash | 1) && strcmp(tables.strings + symbol->st_name, name) == 0;
    if (same && symbol->st_shndx != SHN_UNDEF) return (void*)(object->base + symbol->st_value);
    if ((chain[index - first] & 1) != 0) return NULL;
  }
}
