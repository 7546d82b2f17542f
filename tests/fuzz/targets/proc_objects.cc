// What /proc says of the objects that processes hold: mappings, descriptors, file locks.
#include <string>

#include "fuzz_support.h"
#include "procfs/process_facts.h"
#include "targets.h"

namespace mprun::fuzz {
namespace {

void check_maps(std::string_view text) {
  const std::vector<Mapping> maps = parse_maps(text);
  const Mapping* before = nullptr;
  for (const Mapping& mapping : maps) {
    require(mapping.begin < mapping.end, "a mapping is not empty");
    require(before == nullptr || before->begin <= mapping.begin, "mappings are in order");
    for (const std::uint64_t address : {mapping.begin, mapping.end - 1, mapping.end}) {
      const Mapping* found = find_mapping(maps, address);
      require(found == nullptr || (found->begin <= address && address < found->end), "a mapping holds its addresses");
    }
    before = &mapping;
  }
  require(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1 >= maps.size(), "a line each");
}

void check_descriptor(std::string_view text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  Descriptor descriptor = parse_descriptor(3, text.substr(0, end));
  require(descriptor.target == text.substr(0, end), "a link is kept as it is");
  parse_descriptor_info(text.substr(end), &descriptor);
  require(descriptor.watched.size() == descriptor.watched_inodes.size(), "what is watched has an inode each");
  require(descriptor.watched.empty() || descriptor.kind == Descriptor::Kind::kEpoll, "only an epoll watches");
  require(!descriptor.armed || descriptor.kind == Descriptor::Kind::kTimerfd, "only a timer is armed");
  require(descriptor.watched.size() + descriptor.locks.size() <= text.size(), "a line each");
}

/// Returns one file for every request.
class OneText : public ProcSource {
 public:
  explicit OneText(std::string_view text) : text_(text) {}
  std::optional<std::string> read(const std::string&) override { return text_; }
  std::optional<std::string> link(const std::string&) override { return text_.substr(0, text_.find('\n')); }
  std::optional<std::vector<std::string>> list(const std::string&) override {
    return std::vector<std::string>{"0", "1", text_.substr(0, 3), "99999999999"};
  }
  bool memory(pid_t, std::uint64_t, void*, std::size_t) override { return false; }
  std::optional<std::vector<UnixSocket>> unix_sockets() override { return std::nullopt; }
  std::optional<Nanos> time_limit(pid_t, int) override { return std::nullopt; }
  std::optional<bool> same_memory(pid_t, pid_t) override { return std::nullopt; }

 private:
  std::string text_;
};

}  // namespace

void proc_objects(std::string_view input) {
  const auto kind = Bytes(input).take<std::uint8_t>();
  const std::string_view text = input.substr(std::min<std::size_t>(1, input.size()));
  if (kind == 'm') check_maps(text);
  if (kind == 'd') check_descriptor(text);
  if (kind == 'l') require(parse_locks(text).size() <= text.size(), "a line each");
  if (kind == 't') require(parse_tcp(text).size() <= text.size(), "a line each");
  if (kind == 'r') {
    OneText proc(text);
    const auto descriptors = read_descriptors(&proc, 1);
    require(!descriptors || descriptors->size() <= 4, "no descriptor is made up");
  }
}

}  // namespace mprun::fuzz
