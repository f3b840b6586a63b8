#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every parameter's source can be looked up: check_sources.py RNIC BIBLIOGRAPHY

A source begins with a key of model/bibliography.md, and a section that it names (calibration 7.4, adapter data plane
E.8) stands there; parameters that the table of fits names exist, and their profiles' sources name a key too.
"""
import pathlib
import re
import subprocess
import sys

LINE = re.compile(r"(\S+) = (?:\"[^\"]*\"|\S+)\s+# ?(.*)")
KEY = re.compile(r"(design|calibration|adapter control plane|adapter data plane|IBA|IEEE|PCI Express Base|DCQCN|"
                 r"MLNX_OFED manual|Cummings)\b ?([A-Z]?[0-9.]*[0-9]|[A-H](?:\.[0-9.]*[0-9])?)?")
PROFILES = ("connectx3pro_40g", "connectx5_100g")


def sources(rnic, profile):
    """path -> source, without the unit."""
    text = subprocess.run([rnic, "parameters", "--profile", profile], check=True, capture_output=True, text=True).stdout
    found = {}
    for line in text.splitlines():
        match = LINE.match(line)
        if match:
            parts = match[2].split("; ")
            of_key = [p for p in range(len(parts)) if KEY.match(parts[p])]
            found[match[1]] = "; ".join(parts[of_key[0]:]) if of_key else match[2]
    return found


def plane_chapters(text):
    """First columns of the two tables of the programming interface: "control plane 4", "data plane A.3", ..."""
    known = set()
    for table in re.finditer(r"\| adapter (control|data) plane \|.*?\n\n", text, re.S):
        for row in table[0].strip().splitlines()[2:]:
            for cell in row.split("|")[1].split(","):
                ends = cell.strip().split(" - ")
                if len(ends) == 2:
                    letter = ends[0][:2]
                    known.update(f"{table[1]} plane {letter}{n}" for n in range(int(ends[0][2:]), int(ends[1][2:]) + 1))
                else:
                    known.add(f"{table[1]} plane {ends[0]}")
    return known


def fault(source, text, chapters):
    key = KEY.match(source)
    if not key:
        return "begins with no key"
    name, section = key[1], key[2]
    if name == "calibration":
        if not section:
            return "names no section"
        if section[0] not in "CV" and not re.search(rf"^##+ calibration {re.escape(section)}\b(?!\.)", text, re.M):
            return f"calibration {section} is no section"
    elif name.startswith("adapter "):
        if not section:
            return "names no chapter"
        parts = section.split(".")
        tries = {f"{name[8:]} {'.'.join(parts[:n])}" for n in range(1, len(parts) + 1)}
        if not tries & chapters:
            return f"{name} {section} is in no chapter"
    elif name in ("IBA", "IEEE", "PCI Express Base") and not section:
        return "names no clause"
    elif name == "Cummings" and f"`{name} {section}`" not in text:
        return "is no key"
    elif name == "DCQCN" and "**DCQCN**" not in text:
        return "is not in the list of publications"
    return None


def self_test(text, chapters):
    """What must be refused is refused."""
    bad = ["from somewhere", "calibration: 5", "calibration 9: x", "calibration 7.9", "adapter data plane Z.1",
           "adapter control plane", "IBA says", "calibration 2.99"]
    good = ["design", "design: none", "calibration 7.4: knee", "calibration C08: 2.7", "adapter data plane E.8: 48",
            "adapter data plane A.11.2", "adapter control plane 4.16", "IBA 9.7.2", "IEEE 802.1Q 8.6.8"]
    return [f"self test: {s!r} passes" for s in bad if not fault(s, text, chapters)] + \
           [f"self test: {s!r}: {fault(s, text, chapters)}" for s in good if fault(s, text, chapters)]


def main():
    rnic, text = sys.argv[1], pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
    chapters = plane_chapters(text)
    errors = self_test(text, chapters)
    paths = set()
    for profile in PROFILES:
        for path, source in sources(rnic, profile).items():
            paths.add(path)
            why = fault(source, text, chapters)
            if why:
                errors.append(f"{profile}: {path}: {why}: {source}")
    if len(paths) < 100:
        errors.append(f"only {len(paths)} parameters")
    fits = re.search(r"\| fitted parameter \|.*?\n\n", text, re.S)
    named = re.findall(r"`([a-z_.0-9]+)`", fits[0] if fits else "")
    if len(named) < 20:
        errors.append("the table of fits is not there")
    errors += [f"table of fits: no parameter {path}" for path in named if path not in paths]
    for line in errors:
        print(line)
    print(f"{len(paths)} parameters, {len(errors)} faults")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
