# SPDX-License-Identifier: Apache-2.0
"""What tests of the program have in common: a list of faults, and the run of all checks in a folder of their own."""
import os
import sys
import tempfile


class Faults:
    def __init__(self, program, folder):
        self.program, self.folder, self.faults, self.number = program, folder, [], 0

    def expect(self, ok, text):
        if not ok:
            self.faults.append(text)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, text, name=None):
        """The path of a file with this text, a new one without a name."""
        if name is None:
            self.number += 1
            name = "%d.toml" % self.number
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path


def run_checks(what, kind, checks):
    """Exit status of `usage: CHECK PROGRAM`: each check gets the same `kind`, a Faults."""
    if len(sys.argv) != 2:
        print(what, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        c = kind(sys.argv[1], folder)
        for check in checks:
            check(c)
        for fault in c.faults:
            print(fault)
        print("%d faults" % len(c.faults))
        return 1 if c.faults else 0
