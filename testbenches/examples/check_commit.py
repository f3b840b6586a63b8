#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_commit.py CMAKE SOURCE: what scripts/cmake/commit.cmake says of a tree of git at a commit, behind a tag, changed, as an
archive, as plain files, and as a folder of somebody else's tree; and that it writes only what is new."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

FILES = ("commit.cmake", "archived_commit.txt")


def main():
    cmake, source = sys.argv[1], pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        tree = folder / "tree"
        (tree / "scripts/cmake").mkdir(parents=True)
        for name in FILES:
            shutil.copy(source / "scripts/cmake" / name, tree / "scripts/cmake" / name)
        # As in the repository, whatever this tree's copy has been filled with.
        (tree / "scripts/cmake/archived_commit.txt").write_text("$Format:%h$\n")
        shutil.copy(source / ".gitattributes", tree)

        def git(*words):
            who = ["-c", "user.name=n", "-c", "user.email=n@localhost", "-c", "commit.gpgsign=false"]
            return subprocess.run(["git", *who, *words], cwd=tree, check=True, capture_output=True).stdout

        def said(root):
            header = folder / "header.h"
            subprocess.run([cmake, "-D", f"source={root}", "-D", "version=1.2.3", "-D", f"file={header}", "-P",
                            root / "scripts/cmake/commit.cmake"], check=True)
            lines = dict(line.split()[1:] for line in header.read_text().splitlines())
            return lines["RNIC_VERSION"], lines["RNIC_COMMIT"], lines["RNIC_MODIFIED"]

        def expect(what, root, commit, modified):
            got, wanted = said(root), ('"1.2.3"', f'"{commit}"', modified)
            if got != wanted:
                wrong.append(f"{what}: {got}, expected {wanted}")

        wrong = []
        git("init", "-q")
        git("add", "-A")
        git("commit", "-q", "-m", "one")
        first = git("rev-parse", "--short", "HEAD").decode().strip()
        expect("a commit", tree, first, "false")
        written = (folder / "header.h").stat().st_mtime_ns
        said(tree)
        if (folder / "header.h").stat().st_mtime_ns != written:
            wrong.append("the header is written although nothing has changed")
        git("tag", "v1.2.3")
        expect("a tag", tree, "v1.2.3", "false")
        (tree / "file").write_text("x")
        git("add", "file")
        expect("a changed tree", tree, "v1.2.3", "true")
        git("commit", "-q", "-m", "two")
        second = git("rev-parse", "--short", "HEAD").decode().strip()
        expect("behind a tag", tree, f"v1.2.3-1-g{second}", "false")

        archive = folder / "archive"
        archive.mkdir()
        subprocess.run(["tar", "x", "-C", archive], input=git("archive", "HEAD"), check=True)
        expect("an archive", archive, second, "false")
        plain = folder / "plain"
        shutil.copytree(tree, plain, ignore=shutil.ignore_patterns(".git"))
        expect("plain files", plain, "", "false")
        shutil.copytree(plain, tree / "vendored")
        expect("a folder of another tree", tree / "vendored", "", "false")
        print("\n".join(wrong), end="")
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
