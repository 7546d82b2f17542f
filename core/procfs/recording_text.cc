#include "procfs/recording_text.h"

#include <algorithm>
#include <array>
#include <optional>

#include "procfs/text_scan.h"

namespace mprun {
namespace {

constexpr std::size_t kMemoryBytesInLine = 32;
constexpr std::string_view kHexDigits = "0123456789abcdef";

// --- Escapes

std::string escape(std::string_view text, std::string_view also = "") {
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      escaped += "\\\\";
    } else if ((c == '\t' || (byte >= 0x20 && byte < 0x7f)) && also.find(c) == std::string_view::npos) {
      escaped += c;
    } else {
      escaped += "\\x";
      escaped += kHexDigits[byte >> 4U];
      escaped += kHexDigits[byte & 15U];
    }
  }
  return escaped;
}

std::string escape_word(std::string_view text) { return escape(text, " \t:"); }

/// Takes two hexadecimal digits off the front.
std::optional<char> take_byte(std::string_view* text) {
  const std::size_t high = text->empty() ? std::string_view::npos : kHexDigits.find((*text)[0]);
  const std::size_t low = text->size() < 2 ? std::string_view::npos : kHexDigits.find((*text)[1]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  text->remove_prefix(2);
  return static_cast<char>((high << 4U) | low);
}

/// nullopt: an escape that is none. `unfinished`, if given, takes a single backslash at the end.
std::optional<std::string> unescape(std::string_view text, bool* unfinished = nullptr) {
  std::string plain;
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c != '\\') {
      plain += c;
    } else if (text.empty() && unfinished != nullptr) {
      *unfinished = true;
    } else if (!text.empty() && text.front() == '\\') {
      text.remove_prefix(1);
      plain += c;
    } else if (!text.empty() && text.front() == 'x') {
      text.remove_prefix(1);
      const auto byte = take_byte(&text);
      if (!byte) return std::nullopt;
      plain += *byte;
    } else {
      return std::nullopt;
    }
  }
  return plain;
}

// --- Answers

std::string file_lines(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines += '|' + escape(text.substr(0, end)) + (end == std::string_view::npos ? "\\\n" : "\n");
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::string memory_lines(std::string_view bytes) {
  std::string lines;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i % kMemoryBytesInLine == 0) lines += i == 0 ? "|" : "\n|";
    const auto byte = static_cast<unsigned char>(bytes[i]);
    lines += kHexDigits[byte >> 4U];
    lines += kHexDigits[byte & 15U];
  }
  return bytes.empty() ? lines : lines + '\n';
}

/// What follows the question, from ":" or the newline on.
struct AnswerText {
  std::string_view verb;
  std::string operator()(std::monostate) const { return "\n"; }
  std::string operator()(const std::string& bytes) const {
    if (verb == "link") return ": " + escape(bytes) + '\n';
    return '\n' + (verb == "memory" ? memory_lines(bytes) : file_lines(bytes));
  }
  std::string operator()(const std::vector<std::string>& names) const {
    std::string text = ":";
    for (const std::string& name : names) text += ' ' + escape_word(name);
    return text + '\n';
  }
  std::string operator()(const std::vector<UnixSocket>& sockets) const {
    std::string text = "\n";
    for (const UnixSocket& socket : sockets) {
      text += '|' + std::to_string(socket.inode) + ' ' + std::to_string(socket.peer);
      if (socket.unread != 0) text += " +" + std::to_string(socket.unread);
      text += socket.listening ? " listening" : socket.datagram ? " datagram" : " open";
      text += (socket.name.empty() ? "" : ' ' + escape_word(socket.name)) + '\n';
    }
    return text;
  }
  std::string operator()(bool yes) const { return yes ? ": yes\n" : ": no\n"; }
};

/// An entry before it is parsed. The lines are without their "|".
struct Entry {
  std::string_view head;  ///< what was asked, and ":" with the answer after it, if there is one
  std::optional<std::string_view> inline_answer;
  std::vector<std::string_view> lines;
};

std::optional<ProcAnswer> file_answer(const Entry& entry) {
  std::string bytes;
  for (const std::string_view line : entry.lines) {
    bool unfinished = false;
    const auto plain = unescape(line, &unfinished);
    if (!plain) return std::nullopt;
    bytes += *plain;
    if (!unfinished) bytes += '\n';
  }
  return bytes;
}

std::optional<ProcAnswer> memory_answer(const Entry& entry, std::size_t size) {
  std::string bytes;
  for (std::string_view line : entry.lines) {
    while (!line.empty()) {
      const auto byte = take_byte(&line);
      if (!byte) return std::nullopt;
      bytes += *byte;
    }
  }
  return bytes.size() == size ? std::optional<ProcAnswer>(std::move(bytes)) : std::nullopt;
}

std::optional<ProcAnswer> list_answer(std::string_view text) {
  std::vector<std::string> names;
  TextScan scan(text);
  for (auto word = scan.word(); !word.empty(); word = scan.word()) {
    auto name = unescape(word);
    if (!name) return std::nullopt;
    names.push_back(std::move(*name));
  }
  return names;
}

std::optional<ProcAnswer> sockets_answer(const Entry& entry) {
  std::vector<UnixSocket> sockets;
  for (const std::string_view line : entry.lines) {
    TextScan scan(line);
    UnixSocket socket;
    if (!scan.number(&socket.inode) || !scan.number(&socket.peer)) return std::nullopt;
    scan.skip_blanks();
    if (scan.literal("+") && !scan.number(&socket.unread)) return std::nullopt;
    const std::string_view state = scan.word();
    socket.listening = state == "listening";
    socket.datagram = state == "datagram";
    auto name = unescape(scan.word());
    if ((!socket.listening && !socket.datagram && state != "open") || !name || !scan.at_end()) return std::nullopt;
    socket.name = std::move(*name);
    sockets.push_back(std::move(socket));
  }
  return sockets;
}

std::optional<ProcAnswer> yes_or_no(std::string_view text) {
  if (text == "yes") return true;
  if (text == "no") return false;
  return std::nullopt;
}

std::optional<ProcAnswer> text_answer(std::string_view text) {
  auto plain = unescape(text);
  return plain ? std::optional<ProcAnswer>(std::move(*plain)) : std::nullopt;
}

// --- Entries

/// Takes "read*3" or the like.
bool take_verb(TextScan* scan, std::string_view* verb, std::uint32_t* times) {
  std::string_view word = scan->word();
  const std::size_t star = word.find('*');
  *verb = word.substr(0, star);
  if (star == std::string_view::npos) return true;
  TextScan count(word.substr(star + 1));
  return count.number(times) && count.at_end() && *times > 0;
}

/// Parses the question; `size` is set for memory.
std::optional<std::string> parse_question(std::string_view verb, TextScan scan, std::size_t* size) {
  std::string question;
  if (verb == "read" || verb == "link" || verb == "list" || verb == "private") {
    const auto path = unescape(scan.word());
    if (!path || path->empty()) return std::nullopt;
    question = path_question(verb, *path);
  } else if (verb == "memory") {
    pid_t pid = 0;
    std::uint64_t address = 0;
    if (!scan.number(&pid) || !scan.number(&address, 16) || !scan.number(size)) return std::nullopt;
    question = memory_question(pid, address, *size);
  } else if (verb == "names") {
    const auto path = unescape(scan.word());
    std::uint64_t inode = 0;
    if (!path || path->empty() || !scan.number(&inode)) return std::nullopt;
    question = path_question(verb, *path) + ' ' + std::to_string(inode);
  } else if (verb == "timeout" || verb == "same-memory" || verb == "same-files") {
    int one = 0;
    int other = 0;
    if (!scan.number(&one) || !scan.number(&other)) return std::nullopt;
    question = pair_question(verb, one, other);
  } else if (verb == kSocketsQuestion) {
    question = kSocketsQuestion;
  }
  scan.skip_blanks();
  return scan.at_end() && !question.empty() ? std::optional(std::move(question)) : std::nullopt;
}

std::optional<ProcAnswer> parse_answer(std::string_view verb, const Entry& entry, std::size_t size) {
  const bool in_lines = verb == "read" || verb == "memory" || verb == kSocketsQuestion;
  if (in_lines ? entry.inline_answer.has_value() : !entry.inline_answer || !entry.lines.empty()) return std::nullopt;
  if (verb == "read") return file_answer(entry);
  if (verb == "memory") return memory_answer(entry, size);
  if (verb == kSocketsQuestion) return sockets_answer(entry);
  if (verb == "link") return text_answer(*entry.inline_answer);
  return verb == "list" || verb == "names" ? list_answer(*entry.inline_answer) : yes_or_no(*entry.inline_answer);
}

std::optional<RecordedAnswer> parse_entry(const Entry& entry) {
  RecordedAnswer recorded;
  TextScan scan(entry.head);
  const bool none = scan.literal("none ");
  std::string_view verb;
  if (!take_verb(&scan, &verb, &recorded.times)) return std::nullopt;
  std::size_t size = 0;
  auto question = parse_question(verb, scan, &size);
  if (!question) return std::nullopt;
  recorded.question = std::move(*question);
  if (none) {
    return entry.inline_answer || !entry.lines.empty() ? std::nullopt : std::optional(std::move(recorded));
  }
  auto answer = parse_answer(verb, entry, size);
  if (!answer) return std::nullopt;
  recorded.answer = std::move(*answer);
  return recorded;
}

/// Splits "link 12/fd/3: pipe:[123]".
Entry start_entry(std::string_view line) {
  Entry entry;
  const std::size_t colon = line.find(':');
  entry.head = line.substr(0, colon);
  if (colon == std::string_view::npos) return entry;
  line.remove_prefix(colon + 1);
  if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  entry.inline_answer = line;
  return entry;
}

}  // namespace

std::string path_question(std::string_view verb, std::string_view path) {
  return std::string(verb) + ' ' + escape_word(path);
}

std::string memory_question(pid_t pid, std::uint64_t address, std::size_t size) {
  std::array<char, 16> hex{};
  const auto [end, fault] = std::to_chars(hex.data(), hex.data() + hex.size(), address, 16);
  (void)fault;  // 16 digits hold any address
  return "memory " + std::to_string(pid) + ' ' + std::string(hex.data(), end) + ' ' + std::to_string(size);
}

std::string pair_question(std::string_view verb, int one, int other) {
  return std::string(verb) + ' ' + std::to_string(one) + ' ' + std::to_string(other);
}

std::string names_question(pid_t pid, std::string_view folder, std::uint64_t inode) {
  return path_question("names", std::to_string(pid) + "/root" + std::string(folder)) + ' ' + std::to_string(inode);
}

std::string write_recording(const std::vector<RecordedAnswer>& answers) {
  std::string text;
  for (const RecordedAnswer& recorded : answers) {
    const std::string_view question = recorded.question;
    const std::size_t verb_end = std::min(question.find(' '), question.size());
    const std::string_view verb = question.substr(0, verb_end);
    if (std::holds_alternative<std::monostate>(recorded.answer)) text += "none ";
    text += verb;
    if (recorded.times > 1) text += '*' + std::to_string(recorded.times);
    text += question.substr(verb_end);
    text += std::visit(AnswerText{verb}, recorded.answer);
  }
  return text;
}

Result<std::vector<RecordedAnswer>> parse_recording(std::string_view text) {
  std::vector<RecordedAnswer> answers;
  std::optional<Entry> entry;
  std::size_t line_number = 0;
  std::size_t entry_line = 0;
  const auto finish = [&] {
    if (!entry) return true;
    auto recorded = parse_entry(*entry);
    entry.reset();
    if (recorded) answers.push_back(std::move(*recorded));
    return recorded.has_value();
  };
  const auto fault = [](std::size_t line) {
    return usage_error("recording of /proc, line " + std::to_string(line) + ": this is no question with its answer");
  };
  for (TextScan scan(text); !scan.at_end();) {
    const std::string_view line = scan.line();
    ++line_number;
    if (!line.empty() && line.front() == '|') {
      if (!entry) return fault(line_number);
      entry->lines.push_back(line.substr(1));
      continue;
    }
    if (!finish()) return fault(entry_line);
    if (line.empty() || line.front() == '#') continue;
    entry = start_entry(line);
    entry_line = line_number;
  }
  if (!finish()) return fault(entry_line);
  return answers;
}

}  // namespace mprun
