#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No class or struct of model, tlm and rtl with more than 30 member functions or 25 data members.

What is larger is more than one thing and is to be divided into parts, each with its own state and data sheet. Counted
as declared in the header: all member functions but constructors, destructors and what is defaulted or deleted; all
data members but static ones. A nested type counts as a class of its own; a group of fields in an unnamed one is one
field of what is around it. Needs universal-ctags.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import arguments

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOPS = ("model", "tlm", "rtl")
METHODS, FIELDS = 30, 25

PARAMETERS = "its fields are parameters"
LAYOUT = "the layout is given"
DIAGRAM = "ports, memories and the engines that it ticks: the diagram of a half"

# What may be larger, and why.
EXEMPT = {
    "rnic::adapter::adapter": "only construction: the block diagram",
    "rnic::adapter::config": PARAMETERS,
    "rnic::transport::requester_config": PARAMETERS,
    "rnic::transport::responder_config": PARAMETERS,
    "rnic::fabric::fault_rule": "a rule of a fault file: its fields are the keys of that file",
    "rnic::icm::requester_context": LAYOUT + " by the programming interface",
    "rnic::icm::responder_context": LAYOUT + " by the programming interface",
    "rnic::wire::packet": LAYOUT + " by the standard: the headers of a packet",
    "rnic::transport::requester": DIAGRAM,
    "rnic::transport::responder": DIAGRAM,
}


def tags(folders):
    """What is declared in the headers of the folders, as ctags tells it, by file."""
    headers = sorted(str(h) for folder in folders for h in folder.rglob("*.h"))
    run = subprocess.run(["ctags", "--language-force=C++", "--kinds-C++=cspfmu", "--fields=+neKSZ",
                          "--fields-C++=+{properties}", "--output-format=json", "--sort=no", "-f", "-", "-L", "-"],
                         input="\n".join(headers), capture_output=True, text=True, check=True)
    by_file = {}
    for line in run.stdout.splitlines():
        tag = json.loads(line)
        by_file.setdefault(tag["path"], []).append(tag)
    return by_file


class declared:
    """A class or struct: where it is and how much it has."""

    def __init__(self, path, tag):
        self.path = path
        self.name = f"{tag['scope']}::{tag['name']}" if "scope" in tag else tag["name"]
        self.leaf = tag["name"]
        self.lines = range(tag["line"], tag["end"] + 1)
        self.methods = 0
        self.fields = 0

    def add(self, tag):
        properties = tag.get("properties", "").split(",")
        if tag["kind"] == "member":
            self.fields += "static" not in properties
        elif tag["name"] not in (self.leaf, "~" + self.leaf) and not {"default", "delete"} & set(properties):
            self.methods += 1


def classes(folders):
    """All classes and structs below the folders."""
    found = []
    for path, all_tags in tags(folders).items():
        mine = [declared(path, t) for t in all_tags if t["kind"] in ("class", "struct", "union")]
        for tag in all_tags:
            if tag["kind"] not in ("member", "function", "prototype") or tag["name"].startswith("__anon"):
                continue
            # A function that is defined behind its class has the class's scope too, but it is not inside.
            around = [c for c in mine if c.name == tag.get("scope") and tag["line"] in c.lines]
            if around:
                min(around, key=lambda c: len(c.lines)).add(tag)
        found += mine
    return found


def faults(folders, exempt):
    """Lines that say what is too large, or exempt without need."""
    out = []
    large = set()
    for c in classes(folders):
        if c.methods <= METHODS and c.fields <= FIELDS:
            continue
        large.add(c.name)
        if c.name not in exempt:
            out.append(f"{c.path}: {c.name} has {c.methods} methods and {c.fields} fields "
                       f"(bounds: {METHODS}, {FIELDS})")
    out += [f"check_sizes: {name} is exempt, but not too large" for name in exempt if name not in large]
    return out


def self_test():
    """What is one too large is found, what is at the bound is not."""

    def planted(name, methods, fields):
        lines = [f"class {name} {{", " public:", f"  {name}() = default;", f"  explicit {name}(int a);",
                 f"  ~{name}();", f"  {name}& operator=(const {name}&) = delete;",
                 "  static constexpr int constant = 1;",
                 "  template <class T>", "  void m0(T t) { int local = 0; auto add = [&] { return local; }; }"]
        lines += [f"  int m{i}(int a) const;" for i in range(1, methods)]
        lines += [" private:", "  struct { int one = 1; int two = 2; } group_;", "  part f1_{*this, 4}, f2_;"]
        lines += [f"  std::array<int, 4> f{i}_{{}};" for i in range(3, fields)]
        lines += ["  struct inner {"] + [f"    int i{i} = 0;" for i in range(FIELDS)] + ["  };", "};"]
        return "\n".join(lines + ["template <class T>", f"void {name}::m0(T t) {{}}"])

    expected = {"at_bound": None, "one_field_more": (METHODS, FIELDS + 1), "one_method_more": (METHODS + 1, FIELDS)}
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for name, counts in expected.items():
            methods, fields = counts or (METHODS, FIELDS)
            text = f"namespace x {{\n{planted(name, methods, fields)}\n}}\n"
            (pathlib.Path(folder) / f"{name}.h").write_text(text, encoding="utf-8")
        found = faults([pathlib.Path(folder)], {})
        for name, counts in expected.items():
            about = [f for f in found if f"x::{name} " in f]
            if counts is None:
                wrong += about
            elif len(about) != 1 or f"{counts[0]} methods and {counts[1]} fields" not in about[0]:
                wrong.append(f"{name} is not found: {about}")
        if len(found) != len(expected) - 1:
            wrong.append(f"found: {found}")
        exempt = {f"x::{name}": "" for name in expected}
        if faults([pathlib.Path(folder)], exempt) != ["check_sizes: x::at_bound is exempt, but not too large"]:
            wrong.append("exemptions do not work")
    return [f"self test: {line}" for line in wrong]


def main():
    options = arguments.parser(__doc__)
    options.add_argument("--self-test", action="store_true", help="whether it finds what it should, in classes of its own")
    if options.parse_args().self_test:
        out = self_test()
    else:
        out = [line.removeprefix(f"{ROOT}/") for line in faults([ROOT / top for top in TOPS], EXEMPT)]
    for line in out:
        print(line)
    return 1 if out else 0


if __name__ == "__main__":
    sys.exit(main())
