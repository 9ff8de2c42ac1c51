"""The folders of a packed store whose pages lie in several ones, on several disks.

The first has all that a store has, and the others share its pages: each has `part.msgpack`, which says whose folder it
is, and its files of pages, `pages@<number>.bin` and `column-<n>@<number>.bin`. Page p is in folder p modulo their
number, so that readers of pages in order read all disks at once. A store is known by the checksums of its pages.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgpack

from sigps.errors import GraphError
from sigps.group import Alone
from sigps.whole_files import write_folder

__all__ = [
    "Part",
    "StorePath",
    "arrange_folders",
    "file_in",
    "given_folders",
    "identity",
    "in_folder",
    "part_of",
    "paths_text",
    "write_parts",
]

StorePath = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file or folder, or the folders of one store."""


@dataclass(frozen=True)
class Part:
    """Whose a folder is that is not its store's first.

    Attributes:
        store: The store's identity.
        number: The folder's, from 1.
        of: The folders of the store.
    """

    store: str
    number: int
    of: int


def given_folders(path: StorePath) -> list[Path]:
    """Return the paths that were given, one or several.

    Raises:
        GraphError: If there is none, or one is there twice or within another.
    """
    if isinstance(path, (str, os.PathLike)):
        return [Path(path)]
    found = [Path(each) for each in path]
    if not found:
        raise GraphError("there is no path: give a graph's file or folder, or the folders of its store")
    whole = [Path(os.path.realpath(each)) for each in found]
    for number, folder in enumerate(whole):
        for other in whole[number + 1 :]:
            if folder == other or folder in other.parents or other in folder.parents:
                raise GraphError(
                    f"{folder} and {other} are not two folders beside each other: give each its own"
                )
    return found


def paths_text(path: StorePath) -> str:
    """Return one path or several as a text."""
    return ", ".join(map(str, [path] if isinstance(path, (str, os.PathLike)) else path))


def in_folder(name: str, number: int) -> str:
    """Return the name of the share that a folder has of an array of pages; the first has the plain name."""
    return f"{name}@{number}" if number else name


def file_in(folders: Sequence[Path], name: str) -> Path:
    """Return the file of an array."""
    _, _, number = name.partition("@")
    return folders[int(number or 0)] / f"{name}.bin"


def identity(pieces: Iterable[tuple[str, list[list[int]]]]) -> str:
    """Return what a store is known by.

    Args:
        pieces: Of each array of pages its name and pieces, as in `StoredArray`.
    """
    found = msgpack.packb(sorted((name, own) for name, own in pieces))
    return hashlib.blake2b(found, digest_size=16).hexdigest()


def arrange_folders(first: Path, folders: Sequence[Path], num_folders: int, store: str) -> list[Path]:
    """Return the folders of a store in the order of their numbers.

    Args:
        first: The one with the header.
        folders: All that were given, the first among them, in any order.
        num_folders: How many the header says.
        store: The store's identity.

    Raises:
        GraphError: If one is missing, no folder of a store, or another store's: it is named.
    """
    found = {0: first}
    for folder in folders:
        if folder == first:
            continue
        part = part_of(folder)
        if part is None:
            raise GraphError(
                f"{folder} is none of the folders of the store {first}: it has no {_FILE}. Leave it out"
                if folder.is_dir()
                else f"there is no folder {folder}, given as one of the store {first}. Mount its disk, or name it anew"
            )
        if (part.store, part.of) != (store, num_folders) or not 0 < part.number < num_folders:
            raise GraphError(
                f"{folder} is folder {part.number + 1} of {part.of} of another store than {first}, or of one that was "
                "written before. Give that store's own folders, or write it again"
            )
        if part.number in found:
            raise GraphError(
                f"{found[part.number]} and {folder} are both folder {part.number + 1} of the store {first}: leave one "
                "out"
            )
        found[part.number] = folder
    missing = [str(number + 1) for number in range(num_folders) if number not in found]
    if missing:
        raise GraphError(
            f"the store {first} lies in {num_folders} folders, and {paths_text(folders)} "
            f"{'is' if len(folders) == 1 else 'are'} given: folder {', '.join(missing)} is missing. Give all of them: "
            "sigps.load([..]), or graph: {path: [..]}"
        )
    return [found[number] for number in range(num_folders)]


def part_of(folder: Path) -> Part | None:
    """Return whose a folder is; None where it does not say.

    Raises:
        GraphError: If what it says is damaged.
    """
    try:
        raw = (folder / _FILE).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise GraphError(f"{folder / _FILE} cannot be read: {error.strerror}") from None
    try:
        crc, body = msgpack.unpackb(raw)
        values = msgpack.unpackb(body)
        if zlib.crc32(body) == crc and set(map(type, (values["number"], values["of"]))) == {int}:
            return Part(**values)
    except (KeyError, TypeError, ValueError, msgpack.UnpackException):
        pass
    raise GraphError(f"{folder / _FILE} is damaged. Copy or write the store again")


def write_parts(
    first: Path,
    others: Sequence[Path],
    write: Callable[[list[Path]], Mapping[str, Any]],
    store_of: Callable[[Mapping[str, Any]], str],
) -> Mapping[str, Any]:
    """Write what the folders of a store share; further ones are in their places, whole, when this returns.

    Args:
        first: Where the first one is being written.
        others: The further ones; what is a store's folder there is replaced.
        write: Writes to all folders, given in order, syncs it, and returns what it wrote.
        store_of: Returns the store's identity, from that.

    Returns:
        What `write` returned.

    Raises:
        GraphError: If a folder cannot be written, or is something else.
    """

    def write_next(asides: list[Path]) -> Mapping[str, Any]:
        number = len(asides)
        if number > len(others):
            return write(asides)
        folder, written = others[number - 1], list[Mapping[str, Any]]()

        def finish(aside: Path, found: list[Mapping[str, Any]]) -> None:
            written.extend(found)
            _write_part(aside, Part(store_of(found[0]), number, len(others) + 1))

        write_folder(
            folder,
            Alone(),
            prepare=lambda _: _require_replaceable(folder),
            write=lambda aside: write_next([*asides, aside]),
            finish=finish,
            problem=lambda error: GraphError(
                f"folder {folder} of the store cannot be written: {error.strerror or error}. "
                "Check it, its rights and its disk"
            ),
        )
        return written[0]

    return write_next([first])


_FILE = "part.msgpack"


def _require_replaceable(folder: Path) -> None:
    if folder.exists() and part_of(folder) is None:
        raise GraphError(
            f"{folder} exists and is no further folder of a graph store, so it is not replaced; choose another path"
        )


def _write_part(folder: Path, part: Part) -> None:
    body = msgpack.packb(asdict(part))
    with open(folder / _FILE, "wb") as file:
        file.write(msgpack.packb([zlib.crc32(body), body]))
        file.flush()
        os.fsync(file.fileno())
