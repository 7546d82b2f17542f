// LiveView: what stays at the bottom of a terminal while a job runs: the progress line and, if requested, a table of
// the workers above it. Used by TextReport, which writes each text made here in one go; owns what it last drew.
//
// A new picture overwrites the old one, so that nothing flickers. Messages are written in its place, and it is drawn
// again below them. When a terminal gets narrower, most break the lines that are too long, so that the picture takes
// more rows; others cut them off.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "events/job_event.h"
#include "job/spec.h"
#include "report/progress.h"
#include "report/terminal.h"

namespace mprun {

class LiveView {
 public:
  /// `breaks_lines`: whether the terminal breaks lines that have become too long.
  LiveView(ProgressStyle style, ViewMode mode, bool breaks_lines)
      : style_(std::move(style)), mode_(mode), breaks_lines_(breaks_lines) {}

  void see(const WorkersSeen& seen) { workers_.assign(seen.workers.begin(), seen.workers.end()); }
  /// Replaces the picture that is shown.
  [[nodiscard]] std::string draw(const Pulse& pulse, const Pace& pace, ScreenSize size);
  /// Puts whole lines above the picture, if one is shown.
  [[nodiscard]] std::string above(std::string_view lines, ScreenSize size);
  /// Removes the picture; empty if none is shown.
  [[nodiscard]] std::string erase(ScreenSize size);

 private:
  struct Line {
    std::string text;
    int columns = 0;
  };
  [[nodiscard]] std::string blank(ScreenSize size) const;
  [[nodiscard]] std::string to_its_begin(ScreenSize size) const;
  [[nodiscard]] int rows_at(ScreenSize size) const;
  [[nodiscard]] std::string picture() const;

  ProgressStyle style_;
  ViewMode mode_;
  bool breaks_lines_;
  std::vector<WorkerView> workers_;
  std::vector<Line> shown_;
};

/// The terminal columns that a line takes, control sequences left out.
[[nodiscard]] int columns_of(std::string_view line);

}  // namespace mprun
