#include "report/live_view.h"

#include <algorithm>

#include "report/safe_text.h"
#include "report/worker_table.h"

namespace mprun {
namespace {

constexpr std::string_view kEraseLine = "\x1b[K", kEraseBelow = "\x1b[J";

/// The character that begins at `*at`, which moves past it.
char32_t next_character(std::string_view text, std::size_t* at) {
  const auto byte = static_cast<unsigned char>(text[(*at)++]);
  char32_t character = byte < 0x80 ? byte : byte & (byte < 0xE0 ? 0x1FU : byte < 0xF0 ? 0x0FU : 0x07U);
  while (*at < text.size() && (static_cast<unsigned char>(text[*at]) & 0xC0U) == 0x80U) {
    character = character << 6U | (static_cast<unsigned char>(text[(*at)++]) & 0x3FU);
  }
  return character;
}

}  // namespace

int columns_of(std::string_view line) {
  constexpr char32_t kFirstWide = 0x1100, kFirstBlock = 0x2500, kLastBlock = 0x25FF;
  int columns = 0;
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == '\x1b') {
      at = std::min(line.find('m', at), line.size() - 1) + 1;
      continue;
    }
    const char32_t character = next_character(line, &at);
    const bool block = character >= kFirstBlock && character <= kLastBlock;
    columns += character < kFirstWide || block ? 1 : 2;
  }
  return columns;
}

std::string LiveView::draw(const Pulse& pulse, const Pace& pace, ScreenSize size) {
  std::string text = to_its_begin(size);
  const int rows_before = rows_at(size);
  style_.columns = size.columns;
  std::vector<std::string> lines;
  constexpr int kRowsLeft = 2;  // the progress line, and one row of the text above
  if (mode_ == ViewMode::kWorkers) {
    lines = worker_table(workers_, {size.columns, size.rows - kRowsLeft, style_.color});
  }
  lines.push_back(format_progress(pulse, pace, style_));
  shown_.clear();
  for (std::string& line : lines) {
    if (!style_.unicode) line = ascii(line);
    const int columns = columns_of(line);
    shown_.push_back({std::move(line), columns});
  }
  text += picture();
  text += rows_before > static_cast<int>(shown_.size()) ? kEraseBelow : kEraseLine;
  return text;
}

std::string LiveView::above(std::string_view lines, ScreenSize size) {
  if (shown_.empty()) return std::string(lines);
  return blank(size).append(lines) + "\r" + picture().append(kEraseLine);
}

std::string LiveView::erase(ScreenSize size) {
  if (shown_.empty()) return {};
  std::string text = blank(size);
  shown_.clear();
  return text;
}

// Row by row: if a screen is erased from its first row on, tmux keeps it in its history.
std::string LiveView::blank(ScreenSize size) const {
  std::string text = to_its_begin(size);
  const int below = std::min(rows_at(size), size.rows) - 1;
  for (int row = 0; row < below; ++row) text.append(kEraseLine).append("\x1b[B");
  text += kEraseLine;
  return below > 0 ? text + "\x1b[" + std::to_string(below) + "A" : text;
}

// The cursor is after the last line.
std::string LiveView::to_its_begin(ScreenSize size) const {
  const int above = std::min(rows_at(size), size.rows) - 1;
  return above > 0 ? "\x1b[" + std::to_string(above) + "A\r" : "\r";
}

int LiveView::rows_at(ScreenSize size) const {
  int rows = 0;
  for (const Line& line : shown_) {
    const bool broken = breaks_lines_ && size.columns > 0 && line.columns > size.columns;
    rows += broken ? (line.columns + size.columns - 1) / size.columns : 1;
  }
  return rows;
}

std::string LiveView::picture() const {
  std::string text;
  for (std::size_t i = 0; i < shown_.size(); ++i) {
    text += shown_[i].text;
    if (i + 1 < shown_.size()) text.append(kEraseLine).append("\n");
  }
  return text;
}

}  // namespace mprun
