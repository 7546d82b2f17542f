"""What a disk may hold after a power cut: replays the records of recorder.c up to any point.

Only what a completed sync wrote is certain: the bytes of a file by its own fsync or fdatasync, a name by an
fsync of its directory. Later changes may be there or not: those of one directory in their order, as on
journaling file systems, and the writes to a file in any order.
"""

from __future__ import annotations

import os
import random
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEAD = struct.Struct("<c7xQQQHHI")


def build_recorder(folder: Path) -> Path:
    """Compiles recorder.c."""
    library = folder / "librecorder.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, "-o", str(library), str(HERE / "recorder.c"), "-ldl"], check=True)
    return library


def environment(library: Path, root: Path, log: Path) -> dict[str, str]:
    """The variables that recorder.c reads."""
    return {"LD_PRELOAD": str(library), "RECORDER_ROOT": str(root), "RECORDER_LOG": str(log)}


@dataclass(frozen=True)
class Record:
    """One line of recorder.c."""

    kind: str
    inode: int
    at: int
    length: int
    path: str
    other: str
    data: bytes


def read_records(log: Path) -> list[Record]:
    """All records so far."""
    raw = log.read_bytes() if log.exists() else b""
    found, at = [], 0
    while at + HEAD.size <= len(raw):
        kind, inode, offset, length, path, other, data = HEAD.unpack_from(raw, at)
        at += HEAD.size
        if at + path + other + data > len(raw):
            break
        texts = raw[at : at + path].decode(), raw[at + path : at + path + other].decode()
        at += path + other + data
        found.append(Record(kind.decode(), inode, offset, length, *texts, raw[at - data : at]))
    return found


def written(content: bytes, record: Record) -> bytes:
    """The content of a file after a write, a truncation, an allocation or a hole."""
    end = record.at + (len(record.data) if record.kind == "W" else record.length)
    if record.kind == "T":
        return content[: record.at].ljust(record.at, b"\0")
    if record.kind == "P":
        end = min(end, len(content))
        return content[: record.at] + bytes(max(end - record.at, 0)) + content[end:]
    content = content.ljust(end, b"\0")
    if record.kind == "A":
        return content
    return content[: record.at] + record.data + content[end:]


@dataclass
class File:
    """A file: what is certainly on disk, and the changes since."""

    certain: bytes = b""
    since: list[Record] = field(default_factory=list)

    def content(self) -> bytes:
        content = self.certain
        for record in self.since:
            content = written(content, record)
        return content

    def sync(self, count: int) -> None:
        """The first `count` of the changes are on disk."""
        for record in self.since[:count]:
            self.certain = written(self.certain, record)
        del self.since[:count]


@dataclass
class Folder:
    """A directory: the names that are certainly there, and all later states."""

    states: list[dict[str, "File | Folder"]] = field(default_factory=lambda: [{}])

    @property
    def names(self) -> dict[str, "File | Folder"]:
        return self.states[-1]

    def change(self, added: dict[str, "File | Folder"], removed: str = "") -> None:
        """One step: a rename takes one name away and gives another."""
        self.states.append({name: entry for name, entry in self.names.items() if name != removed} | added)

    def sync(self, count: int) -> None:
        """The first `count` of the changes are on disk."""
        del self.states[:count]


#: What remains on a disk: how many changes of a folder (of how many) arrived, and the content of a file.
Chosen = tuple[Callable[[int], int], Callable[[File], bytes]]


def nothing_but_certain() -> Chosen:
    """Everything that no sync has ordered is lost."""
    return (lambda count: 0), (lambda file: file.certain)


def names_without_content() -> Chosen:
    """Every name is there, with what was synced of its file."""
    return (lambda count: count), (lambda file: file.certain)


def names_with_zeros() -> Chosen:
    """Every name is there, with the file's size, and zeros where nothing was synced."""
    return (lambda count: count), (lambda file: file.certain[: len(file.content())].ljust(len(file.content()), b"\0"))


def everything() -> Chosen:
    """Nothing is lost."""
    return (lambda count: count), File.content


def any_of_it(seed: int) -> Chosen:
    """Some names, and some of the writes to each file."""
    chance = random.Random(seed)

    def content(file: File) -> bytes:
        found = file.certain
        for record in file.since:
            if chance.random() < 0.5:
                found = written(found, record)
        return found

    return (lambda count: chance.randint(0, count)), content


class Disk:
    """The tree below a root at one point of the records."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.top = Folder()
        self._inodes: dict[int, File] = {}
        self._begun: dict[int, list[tuple[File | Folder, int]]] = {}

    @classmethod
    def of(cls, root: Path) -> "Disk":
        """The current tree, all of it on disk."""
        disk = cls(root)
        for folder, folders, files in os.walk(root):
            for name in folders:
                disk._add(os.path.join(folder, name), Folder())
            for name in files:
                path = os.path.join(folder, name)
                file = disk._inodes[os.stat(path).st_ino] = File(Path(path).read_bytes())
                disk._add(path, file)
        for entry in disk.entries():
            if isinstance(entry, Folder):
                entry.sync(len(entry.states) - 1)
        return disk

    def apply(self, record: Record) -> None:
        """One step."""
        kind = record.kind
        if kind in "CMURLS" and self.root not in Path(record.path).parents and record.path != str(self.root):
            return
        if kind == "C":
            self._inodes[record.inode] = file = File()
            self._add(record.path, file)
        elif kind == "M":
            self._add(record.path, Folder())
        elif kind == "U":
            self._folder(record.path).change({}, os.path.basename(record.path))
        elif kind in "RL":
            self._rename(record)
        elif kind in "WTAP":
            if record.inode in self._inodes:
                self._inodes[record.inode].since.append(record)
        elif kind == "E":
            for entry, count in self._begun.pop(record.at, []):
                entry.sync(count)
        else:
            self._begin(record)

    def _begin(self, record: Record) -> None:
        """A sync begins: all changes so far will be on disk when it has ended."""
        if record.kind == "F":
            entries = list(self.entries())
        elif record.inode:
            entries = [self._inodes[record.inode]] if record.inode in self._inodes else []
        else:  # on ext4 an fdatasync brings no new names to disk
            entry = self.find(record.path) if record.kind == "S" else None
            entries = [entry] if entry else []
        self._begun[record.at] = [
            (entry, len(entry.since) if isinstance(entry, File) else len(entry.states) - 1) for entry in entries
        ]

    def entries(self, folder: Folder | None = None) -> Iterator[File | Folder]:
        """Every directory and every file that has a name."""
        folder = folder or self.top
        yield folder
        for entry in folder.names.values():
            if isinstance(entry, Folder):
                yield from self.entries(entry)
            else:
                yield entry

    def find(self, path: str) -> File | Folder | None:
        """The entry that has this name now."""
        entry: File | Folder | None = self.top
        for name in Path(path).relative_to(self.root).parts:
            entry = entry.names.get(name) if isinstance(entry, Folder) else None
        return entry

    def certain(self, path: Path) -> bytes:
        """The certain content of the file that has this name now."""
        entry = self.find(str(path))
        return entry.certain if isinstance(entry, File) else b""

    def _folder(self, path: str) -> Folder:
        folder = self.find(os.path.dirname(path))
        assert isinstance(folder, Folder), path
        return folder

    def _add(self, path: str, entry: File | Folder) -> None:
        self._folder(path).change({os.path.basename(path): entry})

    def _rename(self, record: Record) -> None:
        entry, source, target = self.find(record.path), self._folder(record.path), self._folder(record.other)
        assert entry is not None, record
        gone = os.path.basename(record.path) if record.kind == "R" else ""
        if source is target:
            target.change({os.path.basename(record.other): entry}, gone)
        else:
            self._add(record.other, entry)
            source.change({}, gone)

    def left(self, chosen: Chosen) -> dict[str, bytes | None]:
        """The files (their bytes) and directories (None) of one way in which the power may have been cut."""
        arrived, content = chosen
        found: dict[str, bytes | None] = {}

        def walk(folder: Folder, path: str) -> None:
            names = folder.states[arrived(len(folder.states) - 1)]
            for name, entry in sorted(names.items()):
                if isinstance(entry, Folder):
                    found[path + name] = None
                    walk(entry, f"{path}{name}/")
                else:
                    found[path + name] = content(entry)

        walk(self.top, "")
        return found


def put(left: dict[str, bytes | None], root: Path) -> None:
    """Creates such a disk."""
    root.mkdir()
    for name, content in left.items():
        if content is None:
            (root / name).mkdir(mode=0o700)
        else:
            (root / name).write_bytes(content)
