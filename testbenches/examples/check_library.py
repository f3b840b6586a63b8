#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library as its users have it.

installed: `cmake --install` of the build into a folder, which then moves; each example is built against it and run.
subdirectory: the sources as a part of another project, on a machine without what only tests and programs need: its
options. subdirectory_built: and what it builds, which takes as long as the library does (ctest -C long).
package: the Debian package of `cpack -G DEB`, unpacked: its program runs, an example is built against its library.
Nothing of our compiler flags may be in what a user compiles, and no path of this machine in what is installed.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parent
SAYS = {
    "write": [r'^b: "from a to b"$', r"^a: success after \d\.\d{3} us$"],
    "incast": [r"^drop +\d+\.\d{3} Gb/s, +[1-9]\d* frames dropped, +0 pauses sent$",
               r"^pause +3\d\.\d{3} Gb/s, +0 frames dropped, +[1-9]\d* pauses sent$"],
    "load_curve": [r"^ +36\.0( +\d+\.\d{3}){4}$"],
    "own_block": [r"^WRITE of 2048 bytes: \d\.\d{3} us with the model's ICRC engine, \d\.\d{3} us with one of half"],
}
# What only tests and programs need.
ABSENT = ("GTest", "benchmark", "CLI11", "nlohmann_json", "fmt", "Boost", "Python3")
# A user's options for his own file: what CMake says by itself, where headers are, and SystemC's definition.
ALLOWED = re.compile(r"-(DSC_INCLUDE_DYNAMIC_PROCESSES|DNDEBUG|O3|std=(gnu|c)\+\+17|I.*|isystem|o|c)$")


class failed(Exception):
    pass


def run(command, **more):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        raise failed(f"{' '.join(str(c) for c in command)}: exit {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


class user:
    """Somebody who has only what a folder of his holds."""

    def __init__(self, cmake, compiler, folder):
        self.cmake, self.compiler, self.folder = cmake, compiler, folder

    def configure(self, example, *options):
        """As its user would, with these options of cmake."""
        run([self.cmake, "-S", EXAMPLES / example, "-B", self.folder / example, "-G", "Ninja",
             f"-DCMAKE_CXX_COMPILER={self.compiler}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
             "-DCMAKE_BUILD_TYPE=Release", *options])
        self.check_own_options(example, own_launcher=any("LAUNCHER" in o for o in options))

    def check_own_options(self, example, own_launcher):
        """Of all files that are the user's."""
        commands = json.loads((self.folder / example / "compile_commands.json").read_text())
        own = [c["command"] for c in commands if " -o CMakeFiles/" in c["command"]]  # of targets of his own folder
        if not own:
            raise failed(f"{example}: nothing of the user's is compiled")
        for command in own:
            if not own_launcher and not command.startswith(self.compiler + " "):
                raise failed(f"{example}: a compiler launcher of ours: {command}")
            for word in command.split():
                if word.startswith("-") and not ALLOWED.match(word):
                    raise failed(f"{example}: {word} is an option of ours: {command}")

    def build_and_run(self, example):
        run([self.cmake, "--build", self.folder / example, "--target", example, "--parallel", str(os.cpu_count())])
        said = run([self.folder / example / example])
        for pattern in SAYS[example]:
            if not re.search(pattern, said, re.MULTILINE):
                raise failed(f"{example}: expected {pattern}, got\n{said}")
        return said


def check_own_block(said):
    """The engine has 131 beats of 16 bytes (2048 of payload, headers from the IP header on: 20, 8, 12, 16), a cycle more
    for each but the last one, of 2.342 ns; the message is not there before the last one."""
    before, behind = (float(t) for t in re.findall(r"(\d\.\d{3}) us", said))
    if not 0.29 < behind - before < 0.32:
        raise failed(f"own_block: {behind - before:.3f} us, expected 0.305")


def check_load_curve(said):
    """Goodput is what was offered, within chance (4000 gaps: 1.6 per cent is one standard deviation), and latency rises
    with the load."""
    rows = [[float(x) for x in line.split()] for line in said.splitlines()[1:]]
    for offered, goodput, *_ in rows:
        if not 0.92 < goodput / offered < 1.08:
            raise failed(f"load_curve: {goodput} Gb/s of {offered} offered")
    for column in (2, 3, 4):
        if [r[column] for r in rows] != sorted(r[column] for r in rows) or rows[-1][column] < 2 * rows[0][column]:
            raise failed(f"load_curve: latency does not rise with the load\n{said}")


CHECKS = {"own_block": check_own_block, "load_curve": check_load_curve}


def install(cmake, build, prefix):
    run([cmake, "--install", build, "--prefix", prefix, "--component", "library"])


def check_installed_files(prefix, source, build):
    """No flags, no paths of this machine, no code for link-time optimisation."""
    for file in (prefix / "lib/cmake/rnic").glob("*.cmake"):
        text = file.read_text()
        for word in (str(source), str(build), "-Werror", "-Wall", "-flto", "-mmem", "CMAKE_CXX_STANDARD", "rnic_warnings"):
            if word in text:
                raise failed(f"{file.name} has {word}")
    archives = sorted((prefix / "lib").glob("librnic_*.a"))
    if len(archives) < 30:
        raise failed(f"{len(archives)} archives are installed")
    for archive in archives:
        sections = run(["objdump", "-h", archive])
        if ".gnu.lto" in sections or ".text" not in sections:
            raise failed(f"{archive.name} is not of machine code alone")
    for header in (prefix / "include/rnic").rglob("*.h"):
        for included in re.findall(r'^#include "([^"]+)"', header.read_text(), re.MULTILINE):
            if not (prefix / "include/rnic" / included).exists():
                raise failed(f"{header.relative_to(prefix)}: {included} is not installed")


def check_version(someone, prefix):
    """An older one is taken in the place of none."""
    project = someone.folder / "too_new"
    project.mkdir()
    (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.16)\nproject(p LANGUAGES CXX)\n"
                                            "find_package(rnic 0.8 QUIET)\nfind_package(rnic 99.0 QUIET)\n"
                                            'message(STATUS "found: ${rnic_FOUND}")\n')
    said = run([someone.cmake, "-S", project, "-B", project / "b", f"-DCMAKE_PREFIX_PATH={prefix}",
                f"-DCMAKE_CXX_COMPILER={someone.compiler}"])
    if "found: 0" not in said:
        raise failed(f"another version is taken for the one that was asked for:\n{said}")


def installed(someone, source, build):
    install(someone.cmake, build, someone.folder / "first")
    prefix = someone.folder / "a place"
    shutil.move(someone.folder / "first", prefix)
    check_installed_files(prefix, source, build)
    check_version(someone, prefix)
    for example in SAYS:
        someone.configure(example, f"-DCMAKE_PREFIX_PATH={prefix}")
        said = someone.build_and_run(example)
        if example in CHECKS:
            CHECKS[example](said)


def subdirectory(someone, source, built):
    without = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ABSENT]
    someone.configure("own_block", *without, "-DCMAKE_DISABLE_FIND_PACKAGE_rnic=ON")
    # Soon built: that it can be is what matters here, not how fast it is then.
    soon = ["-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=8", "-DCMAKE_CXX_FLAGS_RELEASE=-DNDEBUG"]
    if shutil.which("ccache"):
        soon.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
        os.environ.update(CCACHE_BASEDIR=str(someone.folder), CCACHE_NOHASHDIR="1")
    someone.configure("write", *without, *soon, f"-DRNIC_SOURCE={source}")
    if built:
        someone.build_and_run("write")


def check_program(prefix, results, folder):
    """Whatever `rnic --help` refers to is installed, and so is what a page is made of."""
    rnic = prefix / "bin/rnic"
    commands = re.findall(r"^  ([a-z0-9-]+) {2,}[A-Z]", run([rnic, "--help"]).split("Subcommands:")[1], re.MULTILINE)
    named = {name for c in commands for name in re.findall(r"[\w./]+\.md\b", run([rnic, c, "--help"]))}
    if len(commands) < 20 or not named:
        raise failed(f"commands {commands} refer to {named}")
    for name in sorted(named):
        if not (prefix / "share/doc/rnic" / name).exists():
            raise failed(f"--help refers to {name}, which is not installed")
    page = folder / "page.html"
    run([rnic, "report", results, "-o", page])
    text = page.read_text()
    if "<html" not in text or re.search(r"""(src|href)=["']?(https?:|/)""", text):
        raise failed(f"{page.name} is not a page of its own")


def package(someone, build):
    run([pathlib.Path(someone.cmake).with_name("cpack"), "-G", "DEB", "-B", someone.folder], cwd=build)
    file, = someone.folder.glob("rnic_*.deb")
    fields = dict(line.strip().split(": ", 1) for line in run(["dpkg-deb", "-f", file]).splitlines() if ": " in line)
    for library in ("libc6", "libsystemc", "libfmt", "libisal", "libpcap0.8", "libstdc++6", "zlib1g"):
        if not re.search(rf"\b{re.escape(library)}\S* \(>= ", fields.get("Depends", "")):
            raise failed(f"{file.name} depends on {fields.get('Depends', 'nothing')}, and not on a version of {library}")
    root = someone.folder / "unpacked"
    run(["dpkg-deb", "-x", file, root])
    results = someone.folder / "results.json"
    run([root / "usr/bin/rnic", "latency", "--sizes", "2", "--quiet", "--json", results])
    said = json.loads(results.read_text())["version"]
    if not re.match(re.escape(fields["Version"]) + r"($| \(\S+(, modified)?\)$)", said):
        raise failed(f"the program of version {fields['Version']} says {said}")
    check_program(root / "usr", results, someone.folder)
    someone.configure("write", f"-DCMAKE_PREFIX_PATH={root}/usr")
    someone.build_and_run("write")


def main():
    case, cmake, compiler, source, build = sys.argv[1:]
    os.environ["SYSTEMC_DISABLE_COPYRIGHT_MESSAGE"] = "1"
    folder = pathlib.Path(build) / "library_test" / case
    if case != "subdirectory_built":
        shutil.rmtree(folder, ignore_errors=True)  # a part of another project is built once, and then what has changed
    folder.mkdir(parents=True, exist_ok=True)
    someone = user(cmake, compiler, folder)
    try:
        if case == "installed":
            installed(someone, source, build)
        elif case == "package":
            package(someone, build)
        else:
            subdirectory(someone, source, case == "subdirectory_built")
    except failed as why:
        print(why)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
