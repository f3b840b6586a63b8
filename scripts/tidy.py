#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy of source files, as a build compiles them; exit status 1 when it finds something.

Each file is read without what Clang does not know: GCC's strategies for memory and its precompiled headers. Files of one
target are read together, eight at a time, because the headers that they share take longer than they do; those that
cannot be compiled together are read one by one."""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

import arguments

TOGETHER = 8
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OWN = "/(model|tlm|rtl|firmware|host_driver|testbenches)/[^.]*"  # as .clang-tidy has it for headers


def commands_of(build):
    """The command of each file, by its path: files that a build compiles together have one of their own each."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    of = {}
    for c in commands:
        command = re.sub(r' -mmem[a-z]*-strategy=[^ "]*| -include [^ "]*cmake_pch[^ "]*', "", c["command"])
        files = [c["file"]]
        if "/Unity/unity_" in c["file"]:
            with open(c["file"], encoding="utf-8") as f:
                files = re.findall(r'^#include "(.*)"$', f.read(), re.MULTILINE)
        for file in files:
            of[file] = (c["directory"], command.replace(c["file"], file))
    return of


def flags(command, file):
    """What two files have in common that can be compiled together: all but their own names."""
    words = shlex.split(command)
    object_of = words[words.index("-o") + 1]
    return command.replace(file, "").replace(object_of, object_of.split(".dir/")[0])


def batches(files, of):
    """Lists of files that may be read together, the larger ones first."""
    groups = {}
    for file in files:
        groups.setdefault(flags(of[file][1], file), []).append(file)
    cut = []
    for group in groups.values():
        number = -(-len(group) // TOGETHER)
        cut += [group[i::number] for i in range(number)]
    return sorted(cut, key=len, reverse=True)


class reader:
    """Runs clang-tidy; `folder` is for what it is given to read."""

    def __init__(self, of, folder):
        self.of = of
        self.folder = folder

    def run(self, name, file, command, directory):
        room = os.path.join(self.folder, name)
        os.makedirs(room)
        with open(os.path.join(room, "compile_commands.json"), "w", encoding="utf-8") as f:
            json.dump([{"directory": directory, "command": command, "file": file}], f)
        # On stderr it only counts the warnings of other people's headers.
        done = subprocess.run(["clang-tidy", "--quiet", "--warnings-as-errors=*", "-p", room,
                               f"--config-file={ROOT}/.clang-tidy", f"--header-filter={OWN}\\.(h|cpp)$",
                               "--extra-arg=-Wno-ignored-optimization-argument", file],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        return done.returncode, done.stdout

    def read(self, number, files):
        """What clang-tidy has to say of these files, and whether that is nothing."""
        if len(files) > 1:
            directory, command = self.of[files[0]]
            together = os.path.join(self.folder, f"together_{number}.cpp")
            with open(together, "w", encoding="utf-8") as f:
                f.writelines(f'#include "{file}"  // NOLINT(bugprone-suspicious-include)\n' for file in files)
            # A name of one file hides no name of another one.
            command = command.replace(files[0], together) + " -Wno-shadow"
            status, said = self.run(f"batch_{number}", together, command, directory)
            if status == 0:
                return True, said
            if "[clang-diagnostic-error" not in said:
                return False, said
        well, words = True, ""
        for place, file in enumerate(files):
            directory, command = self.of[file]
            status, said = self.run(f"file_{number}_{place}", file, command, directory)
            well = well and status == 0
            words += said
        return well, words


def main():
    options = arguments.parser(__doc__)
    options.add_argument("build", metavar="BUILD", help="folder of a build, with compile_commands.json")
    options.add_argument("files", metavar="FILE", nargs="*", help="a source file")
    given = options.parse_args()
    of = commands_of(given.build)
    files = [os.path.abspath(file) for file in given.files]
    for file in [file for file in files if file not in of]:  # of another preset: as its neighbour is
        neighbour = max(of, key=lambda other: len(os.path.commonprefix([other, file])))
        of[file] = (of[neighbour][0], of[neighbour][1].replace(neighbour, file))
    well = True
    with tempfile.TemporaryDirectory() as folder:
        tidy = reader(of, folder)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for right, said in pool.map(tidy.read, *zip(*enumerate(batches(files, of)))) if files else []:
                sys.stdout.write(said)
                sys.stdout.flush()
                well = well and right
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
