#!/usr/bin/env python3
"""Writes a shell's completions from the output of `mprun --help-all`, so that they always have the same options.

    mprun --help-all | generate.py bash|zsh|fish >FILE

The metavar of an option decides how its argument is completed: A|B are the words themselves, FILE and EXE are files,
DIR is a directory; for others nothing is known.
"""

from __future__ import annotations

import re
import sys
from typing import NamedTuple


class Option(NamedTuple):
    names: list[str]
    metavar: str  # empty: a flag
    help: str

    def words(self) -> list[str]:
        """The values of the argument, if they can be listed."""
        return [word for word in self.metavar.split("|") if re.fullmatch("[a-z][a-z:]*", word)]

    def kind(self) -> str:
        """file, dir or nothing."""
        if re.search(r"\b(FILE|EXE)\b", self.metavar):
            return "file"
        return "dir" if self.metavar == "DIR" else ""


class Help(NamedTuple):
    subcommands: list[str]
    options: list[Option]


def parse_help(text: str) -> Help:
    usage, _, options = text.partition("\nOptions:\n")
    words = re.findall(r"^(?:Usage:)? +mprun(?: \[[^\]]*\])* ([a-z]+)\b", usage, re.MULTILINE)
    found = []
    for entry in re.split(r"\n(?=  -)", "\n" + options.rstrip())[1:]:
        head, text = re.match(r"  (\S+(?: \S+)?)(?: {2,}|\n +| )(.*)", entry, re.DOTALL).groups()
        names, _, metavar = head.partition(" ")
        metavar = "" if metavar.startswith("[") else metavar  # it may have an argument: the next word need not be one
        found.append(Option(names.split(","), metavar, " ".join(text.split())))
    return Help(sorted(set(words)), found)


def bash(known: Help) -> str:
    flags = " ".join(name for option in known.options for name in option.names)
    cases = []
    for option in known.options:
        reply = []
        if option.words():
            reply.append(f'COMPREPLY+=($(compgen -W "{" ".join(option.words())}" -- "$word"))')
        if option.kind():
            action = {"file": "-f", "dir": "-d"}[option.kind()]
            reply.append(f'compopt -o filenames; COMPREPLY+=($(compgen {action} -- "$word"))')
        if option.metavar:
            cases.append(f"    {'|'.join(option.names)}) {'; '.join([*reply, 'return'])} ;;")
    return f"""# bash completion of mprun; made from mprun --help-all
_mprun() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${{COMP_WORDS[i]}} == -- ]]; then  # a program and its arguments
      COMPREPLY=($(compgen -f -- "$word"))
      ((i + 1 == COMP_CWORD)) && COMPREPLY+=($(compgen -c -- "$word"))
      compopt -o filenames
      return
    fi
  done
  case $before in
{chr(10).join(cases)}
    resume|report) compopt -o filenames; COMPREPLY=($(compgen -d -- "$word")); return ;;
    inspect|watch) COMPREPLY=($(compgen -W "$(ps -eo pid=)" -- "$word")); return ;;
    help) COMPREPLY=($(compgen -W "$("${{COMP_WORDS[0]}}" help 2>/dev/null | sed -n 's/^  //p')" -- "$word")); return ;;
    explain) COMPREPLY=($(compgen -W "$("${{COMP_WORDS[0]}}" explain 2>/dev/null | cut -d ' ' -f 1)" -- "$word")); return ;;
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "{flags}" -- "$word"))
    return
  fi
  compopt -o filenames
  COMPREPLY=($(compgen -f -X '!*.@(json|py)' -- "$word") $(compgen -d -- "$word"))
  ((COMP_CWORD == 1)) && COMPREPLY+=($(compgen -W "{" ".join(known.subcommands)}" -- "$word"))
}}
shopt -q extglob || shopt -s extglob
complete -F _mprun mprun
"""


def zsh(known: Help) -> str:
    lines = []
    for option in known.options:
        description = option.help.replace("'", "").replace("[", "(").replace("]", ")").replace(":", ",")
        argument = ""
        if option.metavar:
            what = option.metavar.replace(":", ",").replace("'", "").lower()
            action = f"({' '.join(option.words())})" if option.words() else ""
            action = {"file": "_files", "dir": "_files -/"}.get(option.kind(), action)
            argument = f":{what}:{action}"
        for name in option.names:
            others = " ".join(other for other in option.names if other != name)
            exclusive = f"({others})" if others else ""
            lines.append(f"    '{exclusive}{name}[{description}]{argument}'")
    options = " \\\n".join(lines)
    return f"""#compdef mprun
# zsh completion of mprun; made from mprun --help-all
_mprun() {{
  _arguments -s -S \\
{options} \\
    '1: :_mprun_first' \\
    '*: :_files'
}}
_mprun_first() {{
  local -a words=({" ".join(known.subcommands)})
  _describe -t commands 'subcommand' words
  _files -g '*.(json|py)'
}}
_mprun "$@"
"""


def fish(known: Help) -> str:
    lines = ["# fish completion of mprun; made from mprun --help"]
    for word in known.subcommands:
        lines.append(f"complete -c mprun -n __fish_is_first_token -a {word}")
    for option in known.options:
        description = option.help.replace("'", "\\'")
        names = [f"-s {name[1:]}" if len(name) == 2 else f"-l {name[2:]}" for name in option.names]
        argument = ""
        if option.words():
            argument = f" -x -a '{' '.join(option.words())}'"
        elif option.metavar:
            argument = {"file": " -r", "dir": " -x -a '(__fish_complete_directories)'"}.get(option.kind(), " -x")
        lines.append(f"complete -c mprun {' '.join(names)}{argument} -d '{description}'")
    return "\n".join(lines) + "\n"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] not in SHELLS:
        sys.stderr.write(f"usage: mprun --help | {sys.argv[0]} {'|'.join(SHELLS)}\n")
        return 2
    sys.stdout.write(SHELLS[sys.argv[1]](parse_help(sys.stdin.read())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
