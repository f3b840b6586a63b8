#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The last line of scripts/test: how many tests did not run, and why. Judged on what a real ctest writes.

usage: check_not_run.py SOURCE_TREE
"""
import os
import subprocess
import sys
import tempfile

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(three LANGUAGES NONE)
enable_testing()
add_test(NAME fine COMMAND true)
add_test(NAME lacking COMMAND sh -c "echo first line; echo 'skipped: no emulator here'; exit 77")
add_test(NAME lacking_too COMMAND sh -c "echo 'skipped: no emulator here'; exit 77")
add_test(NAME switched_off COMMAND true)
set_tests_properties(lacking lacking_too PROPERTIES SKIP_RETURN_CODE 77)
set_tests_properties(switched_off PROPERTIES DISABLED TRUE)
"""


def last_line(tool, folder, *arguments):
    xml = os.path.join(folder, "test.xml")
    subprocess.run(["ctest", "--test-dir", folder, "--output-junit", xml, *arguments], capture_output=True)
    done = subprocess.run([sys.executable, tool, xml], capture_output=True, text=True)
    assert done.returncode == 0, done
    return done.stdout


def main():
    tool = os.path.join(sys.argv[1], "scripts", "not_run.py")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "CMakeLists.txt"), "w") as f:
            f.write(PROJECT)
        subprocess.run(["cmake", "-S", folder, "-B", folder], capture_output=True, check=True)
        said = last_line(tool, folder)
        assert said.startswith("test: 3 of 4 tests did not run: "), said
        assert "lacking and 1 more (no emulator here)" in said and "switched_off" in said, said
        assert said.count("\n") == 1, said
        assert last_line(tool, folder, "-R", "^fine$") == "", "all ran"
    assert subprocess.run([sys.executable, tool, "/nowhere"], capture_output=True).returncode == 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
