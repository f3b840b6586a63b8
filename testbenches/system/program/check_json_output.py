#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--json -`: standard output has the results and nothing else, whatever it is, and the tables are on standard error."""
import json
import os
import subprocess
import sys
import tempfile

COMMANDS = [
    ["latency", "--sizes", "64", "--iterations", "20"],
    ["bandwidth", "--sizes", "64,4096", "--messages", "200"],
    ["soak", "--messages", "100", "--qps", "2"],
    ["dma", "--test", "lat_rd", "--sizes", "64", "--count", "100"],
    ["devices"],
    ["devinfo"],
    ["ibstat"],
    ["ibdev2netdev"],
    ["show-gids"],
    ["calibrate", "--only", "C04"],
]


def run(rnic, arguments, **how):
    return subprocess.run([rnic, *arguments], stderr=subprocess.PIPE, text=True, check=False, **how)


def check_all(rnic, folder):
    for n, command in enumerate(COMMANDS):
        file = os.path.join(folder, f"{n}.json")
        told = run(rnic, [*command, "--json", file], stdout=subprocess.PIPE)
        assert told.returncode == 0 and told.stdout, told
        piped = run(rnic, [*command, "--json", "-"], stdout=subprocess.PIPE)
        assert piped.returncode == 0, piped
        with open(file, encoding="utf-8") as f:
            assert piped.stdout == f.read(), command
        assert told.stdout in piped.stderr, f"{command}: the tables are not on standard error: {piped.stderr}"


def check_file(rnic, folder):
    """A file that the shell has opened: what is written by its name would go over what is written to it."""
    for name in ("-", "/dev/stdout"):
        file = os.path.join(folder, "output")
        with open(file, "w", encoding="utf-8") as f:
            done = run(rnic, [*COMMANDS[0], "--json", name], stdout=f)
        assert done.returncode == 0, done
        with open(file, encoding="utf-8") as f:
            assert json.load(f)["command"] == "latency", name
    assert not os.path.exists(os.path.join(folder, "-"))


def check_comparison(rnic, folder):
    files = [os.path.join(folder, name) for name in ("0.json", "1.json")]
    done = run(rnic, ["compare", files[0], files[0], "--json", "-"], stdout=subprocess.PIPE)
    assert done.returncode == 0 and json.loads(done.stdout)["command"] == "compare", done
    done = run(rnic, ["compare", *files, "--json", "-"], stdout=subprocess.PIPE)
    assert done.returncode == 1 and json.loads(done.stdout)["command"] == "compare", done


def check_full(rnic):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = run(rnic, [*COMMANDS[0], "--json", "-"], stdout=full)
    assert done.returncode == 2 and done.stderr.endswith("rnic: standard output: writing failed\n"), done


def main():
    rnic = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        check_all(rnic, folder)
        check_file(rnic, folder)
        check_comparison(rnic, folder)
        check_full(rnic)
    return 0


if __name__ == "__main__":
    sys.exit(main())
