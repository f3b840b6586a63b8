# SPDX-License-Identifier: Apache-2.0
"""Kanata logs, as the format's description has them."""


def pipelines(c, path):
    """What the published format says of a Kanata log: instructions by their number, each with its stages: of lane 0, and
    beside it of the other one."""
    with open(path, encoding="utf-8") as f:
        lines = [line.rstrip("\n").split("\t") for line in f]
    c.expect(lines[0] == ["Kanata", "0004"] and lines[1][0] == "C=", "konata: begins with %s" % lines[:2])
    now, all_of, retired = int(lines[1][1]), {}, 0
    for fields in lines[2:]:
        what, rest = fields[0], fields[1:]
        if what == "C":
            c.expect(int(rest[0]) > 0, "konata: time goes by %s" % rest)
            now += int(rest[0])
            continue
        number = int(rest[0])
        if what == "I":
            c.expect(number == len(all_of), "konata: instruction %d is the %dth of the file" % (number, len(all_of)))
            all_of[number] = {"message": int(rest[1]), "thread": int(rest[2]), "begin": now, "stages": [], "beside": [],
                              "open": {}}
            continue
        i = all_of[number]
        c.expect("end" not in i, "konata: %s behind its end" % fields)
        if what == "L":
            i["label"] = rest[2]
        elif what == "S":
            c.expect(rest[1] not in i["open"], "konata: %s while there is another" % fields)
            i["open"][rest[1]] = (rest[2], now)
        elif what == "E":
            name, since = i["open"].pop(rest[1], (None, now))
            c.expect(name == rest[2], "konata: %s ends %s" % (fields, name))
            i["stages" if rest[1] == "0" else "beside"].append((name, since, now))
        elif what == "R":
            c.expect(not i["open"], "konata: %s with open stages" % fields)
            c.expect(rest[2] != "0" or int(rest[1]) == retired, "konata: %s, expected %d" % (fields, retired))
            retired += rest[2] == "0"
            i["end"] = now
        else:
            c.expect(False, "konata: %s" % fields)
    return all_of
