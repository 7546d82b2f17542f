// mprun help [TOPIC]: parts of the manual pages, which man(1) shows.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "commands.h"
#include "json/words.h"
#include "os/fd.h"
#include "run/installation.h"

namespace mprun {
namespace {

struct Page {
  const char* name;  ///< as readers know it: "mprun-job(5)"
  const char* file;
};
constexpr std::array kPages = {
    Page{"mprun(1)", "man1/mprun.1"},
    Page{"mprun-job(5)", "man5/mprun-job.5"},
    Page{"mprun-python(3)", "man3/mprun-python.3"},
};

/// A section, or an item of a list: an option, a field, a variable, a subcommand, an exit code.
struct Part {
  bool is_section = false;
  std::set<std::string> names;  ///< topics that show it, in small letters
  std::string mdoc;             ///< under a heading that names its page
};

using Lines = std::vector<std::string>;

// "RESUMING A RUN": "resuming-a-run".
std::string topic_of(std::string title) {
  for (char& c : title) c = c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return title;
}

// An exit code such as 130 is 128+N of the manual.
std::string topic_of_code(std::string topic) {
  constexpr int kBase = 128, kMostSignals = 64;
  int code = 0;
  const auto [end, fault] = std::from_chars(topic.data(), topic.data() + topic.size(), code);
  const bool whole = fault == std::errc() && end == topic.data() + topic.size();
  return whole && code > kBase && code <= kBase + kMostSignals ? "128+n" : topic;
}

// Of ".It Fl n , Fl -processes Ar N|auto": n and processes. A name of two letters may be taken for a macro.
std::set<std::string> item_names(const std::string& line) {
  std::istringstream words(line.substr(3));
  std::set<std::string> names;
  std::string macro, word;
  while (words >> word) {
    const bool is_macro = word.size() == 2 && std::isupper(static_cast<unsigned char>(word.front())) != 0;
    if (is_macro || word.find_first_not_of(",;|()") == std::string::npos) {
      macro = word;
    } else if (macro != "Ar" && macro != "Pq") {
      names.insert(topic_of(word.substr(std::min(word.find_first_not_of('-'), word.size()))));
    }
  }
  return names;
}

/// Reads a page: sections and, of lists that are not in others, the items.
class PageReader {
 public:
  PageReader(std::string name, Lines lines) : name_(std::move(name)), lines_(std::move(lines)) {}

  std::vector<Part> parts() {
    std::vector<Part> parts;
    int depth = 0;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::string& line = lines_[i];
      if (line.starts_with(".Sh ") || line.starts_with(".Ss ")) parts.push_back(section(i));
      if (line.starts_with(".Bl")) ++depth;
      if (line.starts_with(".El")) --depth;
      if (line.starts_with(".It ") && depth == 1) parts.push_back(item(i));
    }
    return parts;
  }

 private:
  // With its subsections, unless it is one.
  Part section(std::size_t begin) {
    title_ = lines_[begin].substr(4);
    const bool is_whole = lines_[begin].starts_with(".Sh ");
    std::string text = heading();
    for (std::size_t i = begin + 1; i < lines_.size() && !lines_[i].starts_with(".Sh "); ++i) {
      if (!is_whole && lines_[i].starts_with(".Ss ")) break;
      text += lines_[i] + "\n";
    }
    return {true, {topic_of(title_)}, text};
  }

  Part item(std::size_t begin) const {
    std::string text = heading() + ".Bl -tag -width Ds\n" + lines_[begin] + "\n";
    int depth = 1;
    for (std::size_t i = begin + 1; i < lines_.size(); ++i) {
      if (lines_[i].starts_with(".Bl")) ++depth;
      if (lines_[i].starts_with(".El")) --depth;
      if (depth == 0 || (depth == 1 && lines_[i].starts_with(".It "))) break;
      text += lines_[i] + "\n";
    }
    return {false, item_names(lines_[begin]), text + ".El\n"};
  }

  [[nodiscard]] std::string heading() const { return ".Sh " + title_ + ", of " + name_ + "\n"; }

  std::string name_, title_;  ///< of the page, and of the section that is being read
  Lines lines_;
};

Result<Lines> read_lines(const std::string& path) {
  std::ifstream file(path);
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (!lines.empty()) return lines;
  return internal_error("the manual page " + path + " could not be read\n  install mprun again, or see man mprun");
}

Result<std::vector<Part>> read_parts() {
  std::vector<Part> parts;
  for (const Page& page : kPages) {
    auto lines = read_lines(shared_folder() + "/../man/" + page.file);
    if (!lines) return lines.error();
    for (Part& part : PageReader(page.name, std::move(*lines)).parts()) parts.push_back(std::move(part));
  }
  return parts;
}

std::string list_of_topics(const std::vector<Part>& parts) {
  std::set<std::string> topics;
  for (const Part& part : parts) {
    if (part.is_section) topics.insert(part.names.begin(), part.names.end());
  }
  for (const char* of_every_page : {"name", "synopsis", "description", "see-also"}) topics.erase(of_every_page);
  std::string text =
      "mprun help TOPIC shows a part of the manual. A TOPIC is a subcommand, an option (retries), a\n"
      "field of a job (limits.task_seconds), an exit code (124), a variable (NO_COLOR), or:\n";
  for (const std::string& topic : topics) text += "  " + topic + "\n";
  return text;
}

// `man` takes the place of mprun, and pages on a terminal.
Error run_man(const std::string& mdoc) {
  const Fd file(memfd_create("mprun help", MFD_CLOEXEC));
  if (!file || !write_all(file.get(), mdoc) || lseek(file.get(), 0, SEEK_SET) != 0 ||
      dup2(file.get(), STDIN_FILENO) < 0) {
    return internal_error(std::string("the text could not be handed to man: ") + std::strerror(errno));
  }
  execlp("man", "man", "-l", "-", nullptr);
  return usage_error("help: `man` could not be run (" + std::string(std::strerror(errno)) +
                     ")\n  install man-db, or see `mprun --help-all`");
}

Error unknown_topic(const std::string& topic, const std::vector<Part>& parts) {
  std::vector<std::string> known;
  for (const Part& part : parts) known.insert(known.end(), part.names.begin(), part.names.end());
  const auto near = nearest_name(topic, known);
  return usage_error("help: the manual has no part " + in_quotes(clip(topic)) +
                     (near ? "\n  did you mean " + in_quotes(*near) + "?" : "") + "\n  `mprun help` lists the topics");
}

Error show(const std::string& topic, const std::vector<Part>& parts) {
  std::string text;
  for (const Part& part : parts) {
    if (part.names.count(topic) > 0) text += part.mdoc;
  }
  if (text.empty()) return unknown_topic(topic, parts);
  return run_man(".Dd $Mdocdate$\n.Dt MPRUN 1\n.Os\n.Sh NAME\n.Nm mprun\n.Nd what the manual says of " + topic + "\n" +
                 text);
}

}  // namespace

int help(const CommandLine& line) {
  const auto parts = read_parts();
  if (!parts) return report_error(parts.error());
  if (!line.topic.empty()) return report_error(show(topic_of_code(topic_of(line.topic)), *parts));
  const auto printed = print_text(list_of_topics(*parts), "the topics");
  return printed ? 0 : report_error(printed.error());
}

}  // namespace mprun
