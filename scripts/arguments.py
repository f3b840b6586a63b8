# SPDX-License-Identifier: Apache-2.0
"""What the Python scripts have in common about their arguments."""
import argparse
import sys


class parser(argparse.ArgumentParser):
    """Says the first lines of the script's docstring, up to an empty one, for -h and --help. What is wrong with the
    arguments it says in one line, a wrong option before anything that is not there, and ends with status 2."""

    def __init__(self, text):
        super().__init__(description=text.split("\n\n")[0], allow_abbrev=False)

    def parse_args(self, args=None, namespace=None):
        given = sys.argv[1:] if args is None else args
        known = self._option_string_actions
        wrong = [] if {"-h", "--help"} & set(given) else [a for a in given if a.startswith("-") and a not in known]
        if wrong:
            self.error(f"unknown option {wrong[0]} (known: {', '.join(name for name in known if name != '-h')})")
        return super().parse_args(args, namespace)

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message}\n")
