// The parts of a run's page that are plain HTML: figures, tables and texts. Used by run_page.cc; pure.
#pragma once

#include <string>
#include <string_view>

#include "record/run_details.h"
#include "report/run_report.h"

namespace mprun::page {

/// Each is empty if there is nothing to show.
[[nodiscard]] std::string head(const RunRecord& run, const RunFigures& figures);
[[nodiscard]] std::string figures(const RunRecord& run, const RunFigures& figures);
[[nodiscard]] std::string failures(const RunRecord& run, const RunFigures& figures);
[[nodiscard]] std::string hangs(const RunRecord& run, const RunDetails& details);
[[nodiscard]] std::string slowest(const RunRecord& run, const RunFigures& figures);
[[nodiscard]] std::string workers(const RunRecord& run, const RunFigures& figures);
[[nodiscard]] std::string retries(const RunRecord& run, const RunFigures& figures);
[[nodiscard]] std::string processes(const RunRecord& run);
[[nodiscard]] std::string warnings(const RunRecord& run);

}  // namespace mprun::page
