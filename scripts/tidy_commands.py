#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How clang-tidy compiles each file: a build's commands without what Clang does not know, GCC's strategies for memory and
its precompiled headers, and for files that a build compiles together one of their own each."""
import json
import re

import arguments


def main():
    options = arguments.parser(__doc__)
    options.add_argument("commands", metavar="BUILD/compile_commands.json", help="of a build")
    options.add_argument("to", metavar="TO", help="the file that is written")
    files_of = options.parse_args()
    with open(files_of.commands, encoding="utf-8") as f:
        commands = json.load(f)
    out = []
    for c in commands:
        command = re.sub(r' -mmem[a-z]*-strategy=[^ "]*| -include [^ "]*cmake_pch[^ "]*', "", c["command"])
        files = [c["file"]]
        if "/Unity/unity_" in c["file"]:
            with open(c["file"], encoding="utf-8") as f:
                files = re.findall(r'^#include "(.*)"$', f.read(), re.MULTILINE)
        out += [dict(c, file=file, command=command.replace(c["file"], file)) for file in files]
    with open(files_of.to, "w", encoding="utf-8") as f:
        json.dump(out, f, indent=1)


if __name__ == "__main__":
    main()
