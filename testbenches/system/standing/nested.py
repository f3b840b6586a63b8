# SPDX-License-Identifier: Apache-2.0
"""Nested results of the program beside each other."""


def flat(j, path=""):
    """{path: value} of nested results."""
    if isinstance(j, dict):
        return {k: v for key, below in j.items() for k, v in flat(below, path + "/" + key).items()}
    if isinstance(j, list):
        return {k: v for i, below in enumerate(j) for k, v in flat(below, "%s/%d" % (path, i)).items()}
    return {path: j}


def difference(a, b):
    """A line for each value of b that is not that of a."""
    a, b = flat(a), flat(b)
    return ["%s %s, not %s" % (k, b.get(k), a.get(k)) for k in sorted(set(a) | set(b)) if a.get(k) != b.get(k)]
