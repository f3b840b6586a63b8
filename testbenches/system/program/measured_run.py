# SPDX-License-Identifier: Apache-2.0
"""Results of the program for tests: what it wrote as JSON, and a check that ends the test."""
import json
import os
import subprocess


def results(program, folder, *arguments):
    """Of `program ARGUMENTS --json`, through a file in `folder`; ends the test when the program fails."""
    file = os.path.join(folder, "r.json")
    done = subprocess.run([program] + list(arguments) + ["--json", file, "--overwrite", "--quiet"], capture_output=True,
                          text=True)
    if done.returncode != 0:
        raise SystemExit("%s: status %d\n%s" % (" ".join(arguments), done.returncode, done.stderr))
    with open(file) as f:
        return json.load(f)


def check(is_so, what):
    if not is_so:
        raise SystemExit("wrong: %s" % (what,))
