#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every link of a Markdown file to a file or a heading of this repository leads to one."""
import re
import subprocess
import sys
from pathlib import Path

import arguments

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")


def without_code(text):
    """Blocks between fences do not count: what looks like a heading or a link there is none."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def anchors(path):
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", without_code(path.read_text(encoding="utf-8")), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in headings}


def wrong_links(path):
    for link in LINK.findall(without_code(path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists():
            yield "%s: %s: is not there" % (path.relative_to(ROOT), link)
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield "%s: %s: has no such heading" % (path.relative_to(ROOT), link)


def main():
    arguments.parser(__doc__).parse_args()
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True,
                            text=True, check=True).stdout.split("\n")
    wrong = [w for name in listed if name and (ROOT / name).exists() for w in wrong_links(ROOT / name)]
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
