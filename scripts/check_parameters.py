#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every sim::parameter of a struct is on the struct's list, once, and so is every struct below it that has a list.

A field that is forgotten there would have no name, and no constructor would look at its range.
"""
import pathlib
import re
import sys

import arguments

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Fields that have their name, and are checked, in another place.
ELSEWHERE = {
    "rnic::transport::requester_config.congestion": "one set for both halves: adapter::config.congestion",
    "rnic::transport::responder_config.congestion": "one set for both halves: adapter::config.congestion",
    "rnic::transport::requester_config.read_engine": "one set for both halves: adapter::config.read_engine",
    "rnic::transport::responder_config.read_engine": "one set for both halves: adapter::config.read_engine",
    "rnic::host::root_complex_config.link": "one set for both ends: endpoint_config.link",
    "rnic::parser::parser::config.roce_v2": "adapter.port.roce_v2: adapter::config",
    "rnic::adapter::config.icrc": "rtl.icrc: adapter::announce",
    "rnic::adapter::config.gid": "rtl.gid: adapter::announce",
    "rnic::hosts::node_config.tlm_sockets": "tlm.sockets: hosts::announce",
    "rnic::hosts::node_config.sides": "a.rtl, b.rtl: hosts::announce",
    "rnic::hosts::node_config.adapter": "adapter::announce",
    "rnic::hosts::two_nodes_config.node": "hosts::announce",
    "rnic::hosts::two_nodes_config.node_b": "node's, where side b differs: program::side_parameters",
    "rnic::hosts::two_nodes_config.timing": "sim.*: hosts::announce",
}

OPENS = re.compile(r"(?:(namespace|struct|class|enum class|enum)\s+([\w:]+)[^;{}()=]*)?\{")
PARAMETER = re.compile(r"\bparameter<[^;{}]*?>\s+(\w+)\s*[;{]")
ARRAY_OF = re.compile(r"std::(?:array|optional)<([\w:]+)[^;>]*>\s+(\w+)\s*[;{]")
MEMBER = re.compile(r"(?<![\w:<])([\w:]+)\s+(\w+)\s*[;{=]")
LISTED = re.compile(r"\bare\(\s*\"[^\"]*\",\s*([\w.]+)\)")


def structs(text):
    """{full name: (its own text without what is in inner braces of types, members of inner types, its list)}"""
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"\"(?:[^\"\\]|\\.)*\"", lambda m: '""' if len(m[0]) > 40 else m[0], text)
    found = {}

    def block(at, name):
        """Reads from behind a brace to its end; returns where that is."""
        own = ""
        while True:
            brace = re.compile(r"[{}]").search(text, at)
            if brace is None:
                own += text[at:]
                break
            if brace[0] == "}":
                own += text[at:brace.start()]
                at = brace.end()
                break
            opened = None
            for m in OPENS.finditer(text, at, brace.end()):
                if m.end() == brace.end():
                    opened = m
            kind, inner = (opened[1], opened[2]) if opened else (None, None)
            if kind in ("namespace", "struct", "class"):
                own += text[at:opened.start()]
                at = block(brace.end(), f"{name}::{inner}" if name else inner)
                after = re.match(r"\s*(\w+)\s*;", text[at:]) if kind == "struct" else None
                if after:
                    own += f" {inner} {after[1]};"
                    at += after.end()
            else:
                own += text[at:brace.end()]
                end = brace.end()
                depth = 1
                while depth:
                    b = re.compile(r"[{}]").search(text, end)
                    depth += 1 if b[0] == "{" else -1
                    end = b.end()
                own += text[brace.end():end]
                at = end
        found[name] = found.get(name, "") + own
        return at

    block(0, "")
    return found


def faults(files):
    """files: {path: text}. Lines that say what is missing."""
    all_structs = {}
    for text in files.values():
        for name, own in structs(text).items():
            if name:
                all_structs[name] = all_structs.get(name, "") + own
    with_list = {n for n, own in all_structs.items() if "fields& are)" in own}

    def has_list(scope, kind):
        return any(n == kind or n.endswith("::" + kind) for n in with_list)

    out, parameters = [], 0
    for name in sorted(all_structs):
        own = all_structs[name]
        names = PARAMETER.findall(own)
        parameters += len(names)
        if name in with_list:
            names += [m[1] for m in MEMBER.findall(own) if has_list(name, m[0]) and m[1] not in names]
            names += [m[1] for m in ARRAY_OF.findall(own) if has_list(name, m[0])]
        listed = LISTED.findall(own)
        for field in names:
            if name == "rnic::sim" or name.startswith("rnic::sim::parameter"):
                continue
            count = listed.count(field)
            elsewhere = f"{name}.{field}" in ELSEWHERE
            if count + elsewhere != 1:
                out.append(f"{name}: {field} is {'not on the list' if count == 0 else 'named more than once'}")
    return out, parameters


def self_test():
    """What must be found is found."""
    good = """namespace rnic::x {
struct inner { sim::parameter<unsigned> a{1, {1, 2, "", "design"}}; void list(sim::fields& are) { are("a", a); } };
class block {
  struct config {
    sim::parameter<unsigned> n{8, {1, 32, "units", "design"}};  ///< a comment { with a brace
    struct stages {
      sim::parameter<bool> b{true, "design"};
      void list(sim::fields& are) { are("b_cycles", b); }
    } part;
    unsigned plain = 4;
    inner below;
    void list(sim::fields& are) { are("n", n); are("", part); are("below", below); }
  };
};
}
"""
    out = [f"self test: {line}" for line in faults({"good.h": good})[0]]
    for gone in ('are("n", n);', 'are("", part);', 'are("below", below);', 'are("b_cycles", b);', 'are("a", a);'):
        for bad in (good.replace(gone, ""), good.replace(gone, gone + gone)):
            if len(faults({"bad.h": bad})[0]) != 1:
                out.append(f"self test: {gone} is not missed: {faults({'bad.h': bad})[0]}")
    return out


def main():
    arguments.parser(__doc__).parse_args()
    files = {p: p.read_text(encoding="utf-8") for top in ("model", "host_driver", "firmware", "tlm")
             for p in sorted((ROOT / top).rglob("*.h"))}
    out, parameters = faults(files)
    out += self_test()
    if parameters < 150:
        out.append(f"only {parameters} parameters")
    for line in out:
        print(line)
    return 1 if out else 0


if __name__ == "__main__":
    sys.exit(main())
