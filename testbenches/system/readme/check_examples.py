#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the README files show of `rnic` is what it says: check_examples.py PROGRAM ROOT [--only PATH] [--update]

Each file's examples are run in a folder of their own, in their order: `$ cat FILE` is how FILE comes there, or shows
what an example has written, `$ build/release/rnic ...` is run (a line that ends in a backslash goes on), other commands
are not looked at. Its output must have the lines that are shown, one behind the other; "..." and a remark in brackets
stand for any number of lines, "..." behind a line for its end. The exit status is 1 when a line is not there.
--update writes what is said now in its place: the line that is most like it, behind the one before. Read the change.
"""
import argparse
import concurrent.futures
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile

SHOWN = "$ build/release/rnic"
# Checked by tests of their own, with what they need beside them.
ELSEWHERE = {
    "serve": "a peer", "calibrate": "minutes", "soak": "minutes", "report": "results of a run before",
}


class example:
    def __init__(self, line, command, first):
        """`line`: of the command, from 1; `first`: of what is shown, from 0."""
        self.line, self.command, self.first, self.shown = line, command, first, []


def examples(text):
    """Of all blocks, in order."""
    found, inside, number = [], False, 0
    lines = iter(text.split("\n"))
    for line in lines:
        number += 1
        if line.startswith("```"):
            inside = not inside
            found.append(None)  # what is shown ends with its block
        elif inside and line.startswith("$ "):
            command, at = line[2:], number
            while command.endswith("\\"):
                command = command[:-1] + next(lines).strip()
                number += 1
            found.append(example(at, command, number))
        elif inside and found and found[-1] is not None:
            found[-1].shown.append(line.rstrip())
    return [e for e in found if e is not None]


def is_gap(line):
    line = line.strip()
    return line == "..." or (line.startswith("(") and line.endswith(")"))


def fits(shown, said):
    return shown == said or (shown.endswith("...") and said.startswith(shown[:-3]))


def missing(shown, said):
    """The first line shown that does not come where it should, or None."""
    at, free = 0, True  # the first one may come anywhere: progress and the like are not shown
    for line in shown:
        if is_gap(line):
            free = True
            continue
        places = [i for i in range(at, len(said) if free else min(at + 1, len(said))) if fits(line, said[i])]
        if not places:
            return line
        at, free = places[0] + 1, False
    return None


def renewed(shown, said):
    """What is shown, as it is said now."""
    lines, at, free = [], 0, True
    for line in shown:
        if is_gap(line) or at >= len(said):
            free = True
        else:
            places = range(at, len(said) if free else at + 1)
            exact = [i for i in places if fits(line, said[i])]
            like = exact[0] if exact else max(places, key=lambda i: difflib.SequenceMatcher(None, line, said[i]).ratio())
            at, free = like + 1, False
            if not exact:
                cut = line.endswith("...") and len(said[like]) > len(line)
                line = said[like][:len(line) - 3] + "..." if cut else said[like]
        lines.append(line)
    return lines


def update(path, e, said):
    lines = path.read_text(encoding="utf-8").split("\n")
    lines[e.first:e.first + len(e.shown)] = renewed(e.shown, said)
    path.write_text("\n".join(lines), encoding="utf-8")


def check(program, root, path, renew):
    wrong, ran = [], 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(root / "traces", os.path.join(folder, "traces"))
        for e in examples(path.read_text(encoding="utf-8")):
            if e.command.startswith("cat "):
                file = pathlib.Path(folder, e.command[4:].strip())
                if not file.exists() and file.parent.exists():
                    file.write_text("\n".join(e.shown) + "\n", encoding="utf-8")
                said = file.read_text(encoding="utf-8") if file.exists() else ""
            elif ("$ " + e.command).startswith(SHOWN + " ") and e.command.split()[1] not in ELSEWHERE:
                ran += 1
                said = subprocess.run(["bash", "-c", e.command.replace("build/release/rnic", str(program))], cwd=folder,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                                      check=False).stdout
            else:
                continue
            said = [line.rstrip() for line in said.split("\n")]
            line = missing(e.shown, said)
            if line is None:
                continue
            wrong.append(f"{path.relative_to(root)}:{e.line}: {e.command}\n    does not say: {line}")
            if renew:
                update(path, e, said)
    return ran, wrong


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program", type=pathlib.Path)
    arguments.add_argument("root", type=pathlib.Path)
    arguments.add_argument("--only", help="part of the path of the files to look at")
    arguments.add_argument("--update", action="store_true", help="write what is said now into the files")
    o = arguments.parse_args()
    root = o.root.resolve()
    files = [p for top in ("", "model", "rtl", "tlm", "firmware", "host_driver", "testbenches", "traces", "scripts")
             for p in sorted((root / top).glob("*.md" if top == "" else "**/*.md"))]
    files = [p for p in files if SHOWN in p.read_text(encoding="utf-8") and (o.only is None or o.only in str(p))]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda p: check(o.program.resolve(), root, p, o.update), files))
    for _, wrong in results:
        for w in wrong:
            print(w)
    failed = sum(len(wrong) for _, wrong in results)
    print(f"{sum(ran for ran, _ in results)} examples of {len(files)} files, {failed} that say something else")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main())
