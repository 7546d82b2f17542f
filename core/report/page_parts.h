// PageParts: the fixed parts of the page of `mprun report --html`: the files of core/report/page and the library that
// draws, put into the program when it is built (page/assemble.py writes page_parts.cc).
#pragma once

#include <string_view>

namespace mprun {

struct PageParts {
  std::string_view html;     ///< page.html, with @name@ where text is filled in
  std::string_view style;    ///< page.css
  std::string_view library;  ///< d3; empty: this mprun was built without it, and its pages have no graphs
  std::string_view scripts;  ///< those of core/report/page; empty without the library
  std::string_view licence;  ///< of the library
  std::string_view policy;   ///< Content-Security-Policy: just these scripts and this style, and no network
};

[[nodiscard]] const PageParts& built_in_page_parts();

}  // namespace mprun
