# For tests/run and tests/machines/stages, which source it from the root of the working tree.
# shellcheck shell=bash

# record STAGE PASSED FAILED SKIPPED SECONDS: adds a line to build/stages.tsv, with the time and the commit first;
# tests/machines/table reads them. TESTED_COMMIT is set by tests/machines/run, which copies no history.
record() {
  local commit=${TESTED_COMMIT:-}
  if [[ -z $commit ]]; then
    commit=$(git -c 'safe.directory=*' describe --always --exclude='*' --abbrev=8 --dirty 2>/dev/null) || commit=unknown
  fi
  mkdir -p build
  (IFS=$'\t' && set -- "$(date -u +%FT%TZ)" "$commit" "$@" && echo "$*" >>build/stages.tsv)
}
