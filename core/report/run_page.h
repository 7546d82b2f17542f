// The page of `mprun report --html`: one HTML file with all that run_text shows and more, readable without scripts, and
// the data from which its scripts draw the timeline, histograms, CPU and memory, and which process waits for which.
// Pure; called by cli/. Texts from the job (messages, names, tracebacks) are escaped here, and the page's policy
// executes only mprun's own scripts.
#pragma once

#include <string>

#include "record/run_details.h"
#include "report/page_parts.h"
#include "report/run_report.h"

namespace mprun {

[[nodiscard]] std::string run_page(const RunRecord& run, const RunDetails& details, const PageParts& parts);

/// What the scripts draw, as JSON that may stand inside <script>:
///
///   zero       seconds since 1970 from which all times below count
///   span       seconds until the last end
///   sessions   microseconds at which mprun began, ascending
///   count, attempts   how many, and base64 of varints, worker by worker: the worker, how many attempts; then for each,
///              by start: its task (zigzag, less the one before), its start (less the one before) and how long it took
///              in microseconds, and 4 * attempt + how it ended (RunRecord::End)
///   phases     [worker, start, how long it took in microseconds, text] of the starts of workers; below 0: of a host
///   failures   [task, attempt, "Type: message"], also of attempts that were tried again
///   usage      {steps: [[begin, end, bytes]], workers: [[worker, [cores], [bytes]]]}, null where nothing was recorded
///   hangs      the reports, as in hangs/N.json
[[nodiscard]] std::string page_data(const RunRecord& run, const RunDetails& details);

}  // namespace mprun
