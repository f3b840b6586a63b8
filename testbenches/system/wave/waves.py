# SPDX-License-Identifier: Apache-2.0
"""A waveform as GTKWave's own reader (fst2vcd) tells it: signals by path, sampled by their clocks."""
import bisect
import re
import subprocess

VAR = re.compile(r"\$var (\S+) (\d+) (\S+) (.+?)(?: \[\d+:\d+\])? \$end")


class Wave:
    def __init__(self, reader, path):
        done = subprocess.run([reader, path], capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise RuntimeError("%s: the reader says %s" % (path, done.stderr[-500:]))
        self.bits, self.kinds, self.changes, self.timescale = {}, {}, {}, None
        by_code, above, at, lines = {}, [], 0, iter(done.stdout.splitlines())
        for line in lines:
            if line.startswith("$timescale"):
                self.timescale = (line + next(lines)).replace("$timescale", "").replace("$end", "").strip()
            elif line.startswith("$scope"):
                above.append(line.split()[2])
            elif line.startswith("$upscope"):
                above.pop()
            elif line.startswith("$var"):
                found = VAR.match(line)
                path_of = ".".join(above + [found[4]])
                if path_of in self.changes:
                    raise RuntimeError("%s: %s is there twice" % (path, path_of))
                self.bits[path_of] = int(found[2])
                self.kinds[path_of] = found[1]
                self.changes[path_of] = by_code.setdefault(found[3], [])
            elif line.startswith("#"):
                if int(line[1:]) < at:
                    raise RuntimeError("%s: time goes back from %d to %s" % (path, at, line))
                at = int(line[1:])
            elif line[:1] in ("b", "r"):
                value, code = line[1:].split()
                by_code[code].append((at, value))
            elif line[:1] in ("0", "1", "x", "z"):
                by_code[line[1:]].append((at, line[0]))
        self.end = at

    def scopes(self, ending):
        """Of all signals of that name."""
        return sorted(p[:-len(ending) - 1] for p in self.changes if p.endswith("." + ending))

    def at(self, path, times):
        """Values as numbers behind the changes of each of these times; None: unknown."""
        changes = self.changes[path]
        starts = [t for t, _ in changes]
        values = [int(v, 2) if set(v) <= {"0", "1"} else None for _, v in changes]
        found = []
        for t in times:
            i = bisect.bisect_right(starts, t)
            found.append(values[i - 1] if i else None)
        return found

    def rises(self, path):
        """When it becomes 1."""
        changes = self.changes[path]
        return [t for (_, before), (t, now) in zip([(0, "0")] + changes, changes) if now == "1" and before != "1"]
