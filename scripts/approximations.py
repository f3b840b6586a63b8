#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists what the model approximates: every comment `// Approximation: ...` of the sources, in model/README.md. Says
whether the list there is current, with exit status 1 when it is not."""
import pathlib
import re
import sys

import arguments

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = ROOT / "model" / "README.md"
BEGIN, END = "<!-- approximations: begin -->\n", "<!-- approximations: end -->\n"
FOLDERS = ("model", "tlm", "rtl", "firmware", "host_driver")


def comments(path):
    """Texts of the approximation comments of a file: the sentence goes on over following comment lines."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for i, line in enumerate(lines):
        match = re.search(r"///?<?\s.*?Approximation: (.*)", line)
        if not match:
            continue
        text = [match.group(1)]
        for following in lines[i + 1:]:
            more = re.match(r"\s*///?\s+(.*)", following)
            if not more or "Approximation:" in following or text[-1].rstrip().endswith("."):
                break
            text.append(more.group(1))
        yield " ".join(text).strip()


def listing():
    rows = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".sv"):
                rows += [f"- `{path.relative_to(ROOT)}`: {text}\n" for text in comments(path)]
    return "".join(rows)


def main():
    options = arguments.parser(__doc__)
    options.add_argument("--write", action="store_true", help="write the list where it is not")
    write = options.parse_args().write
    text = README.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    wanted = head + BEGIN + listing() + END + tail
    if wanted == text:
        return 0
    if write:
        README.write_text(wanted, encoding="utf-8")
        return 0
    print("model/README.md: the list of approximations is not current; run scripts/approximations.py --write", file=sys.stderr)
    return 1


sys.exit(main())
