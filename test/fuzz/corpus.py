# SPDX-License-Identifier: MIT
"""Keeps the inputs of each fuzz target in one archive, test/fuzz/corpus/TARGET.tar.gz.

usage: python3 test/fuzz/corpus.py list TARGET                the names of its inputs
       python3 test/fuzz/corpus.py add TARGET FILE...         add inputs; named after their SHA-1
       python3 test/fuzz/corpus.py pack TARGET DIRECTORY      replace all inputs by those of a directory
       python3 test/fuzz/corpus.py unpack ARCHIVE DIRECTORY [STAMP]
                                                              the build does this

The same inputs always give the same archive: members are sorted, and have no owner and no time.
"""

import gzip
import hashlib
import io
import os
import shutil
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))


def archive(target):
    return os.path.join(HERE, "corpus", target + ".tar.gz")


def read(path):
    """Returns the inputs of an archive as a dict from name to bytes; empty if there is no archive."""
    if not os.path.exists(path):
        return {}
    with tarfile.open(path, "r:gz") as tar:
        members = [member for member in tar.getmembers() if member.isfile()]
        return {os.path.basename(member.name): tar.extractfile(member).read() for member in members}


def read_directory(directory):
    inputs = {}
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "rb") as file:
            inputs[name] = file.read()
    return inputs


def write(path, inputs):
    """Writes an archive, unless it has these inputs already: another zlib may pack them differently."""
    if os.path.exists(path) and read(path) == inputs:
        return
    unpacked = io.BytesIO()
    with tarfile.open(fileobj=unpacked, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(inputs):
            member = tarfile.TarInfo(name)
            member.size = len(inputs[name])
            tar.addfile(member, io.BytesIO(inputs[name]))
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(unpacked.getvalue())


def pack(target, directory):
    """Makes the files of a directory the inputs of a target. Returns how many were added."""
    before = read(archive(target))
    inputs = read_directory(directory)
    write(archive(target), inputs)
    return len(inputs.keys() - before.keys())


def add(target, paths):
    inputs = read(archive(target))
    for path in paths:
        with open(path, "rb") as file:
            content = file.read()
        inputs[hashlib.sha1(content).hexdigest()] = content
    write(archive(target), inputs)


def unpack(path, directory):
    """Makes the inputs of an archive the only files of a directory."""
    inputs = read(path)
    if not inputs:
        sys.exit(f"{path}: no inputs")
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    for name, content in inputs.items():
        with open(os.path.join(directory, name), "wb") as file:
            file.write(content)


def main(words):
    command, rest = (words[0], words[1:]) if words else ("", [])
    if command == "list" and len(rest) == 1:
        print("\n".join(sorted(read(archive(rest[0])))))
    elif command == "add" and len(rest) >= 2:
        add(rest[0], rest[1:])
    elif command == "pack" and len(rest) == 2:
        pack(*rest)
    elif command == "unpack" and len(rest) in (2, 3):
        unpack(*rest[:2])
        for stamp in rest[2:]:
            with open(stamp, "w", encoding="ascii"):
                pass
    else:
        sys.exit(__doc__.strip())


if __name__ == "__main__":
    main(sys.argv[1:])
