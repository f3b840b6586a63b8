#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a small Linux guest with Soft-RoCE (rdma_rxe) and the tools of rdma-core out of Debian packages.

Usage: build_guest.py FOLDER. Leaves FOLDER/vmlinuz (or vmlinux, which boots faster) and FOLDER/initrd. The packages are
downloaded with apt-get and unpacked, not installed. Exit status 77, with a line why, when that is not possible here.
"""
import glob
import lzma
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

TOOLS = ["usr/bin/" + name for name in (
    "ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong ibv_xsrq_pingpong ibv_devinfo rping ucmatose udaddy"
    " mckey rdma_server rdma_client cmtime ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_send_bw ib_send_lat ib_atomic_bw ib_atomic_lat rdma").split()]
TOOLS += ["bin/ip", "sbin/tc"]
HERE = os.path.dirname(os.path.abspath(__file__))
PEER = os.path.join(HERE, "verbs_peer.c")  # verbs by command; made here
OWN_PATH = os.path.join(HERE, "own_path.c")  # without which udpong has no path to itself; made here
PRELOADED = "usr/lib/own_path.so"
TOOLS += ["usr/bin/verbs_peer", "usr/bin/rstream", "usr/bin/udpong", "usr/bin/rdma_xserver", "usr/bin/rdma_xclient",
          "usr/bin/qperf"]
PACKAGES = """busybox-static libc6 libgcc-s1 ibverbs-utils ibverbs-providers libibverbs1 rdmacm-utils librdmacm1
 libnl-3-200 libnl-route-3-200 iproute2 libbpf1 libelf1 libmnl0 libcap2 libdb5.3 libselinux1 libpcre2-8-0 libtirpc3
 libxtables12 libbsd0 libmd0 zlib1g libgssapi-krb5-2 libkrb5-3 libk5crypto3 libkrb5support0 libcom-err2 libkeyutils1
 libssl3 perftest qperf libpci3 libudev1 libibumad3""".split()
MODULES = ["virtio_pci", "virtio_net", "crc32_generic", "8021q", "bonding", "sch_netem", "ib_uverbs", "rdma_cm", "rdma_ucm", "rdma_rxe"]

# A process of its own reads the commands: process 1 gets a signal for each orphan, and a shell that reads a line when a
# signal comes forgets what it has read of it.
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /bin /proc /sys /dev /tmp
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
echo 1 > /proc/sys/kernel/printk
for m in $(cat /modules); do insmod $m || echo "cannot load $m"; done
/sbin/ip link set lo up
stty -F /dev/ttyS1 raw -echo
sh /commands < /dev/ttyS1 > /dev/ttyS1 2>&1
poweroff -f
"""

# Runs what comes in on the second serial port, line by line, and answers there: output, then "@@END <status>".
COMMANDS = """echo @@READY
while read -r line; do
  sh -c "$line" < /dev/null
  echo "@@END $?"
done
"""


class unavailable(Exception):
    pass


def run(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as e:
        raise unavailable("%s: %s" % (command[0], e.strerror))
    if done.returncode != 0:
        raise unavailable("%s: %s" % (" ".join(command[:2]), (done.stderr.strip().splitlines() or ["failed"])[-1]))
    return done.stdout


def kernel_package():
    """Name of the package with the kernel, or nothing where apt has no lists."""
    try:
        depends = run("apt-cache", "depends", "linux-image-amd64")
    except unavailable:
        return None
    return re.search(r"Depends: (linux-image-[0-9]\S*)", depends)


def download(folder):
    kernel = kernel_package()
    if kernel is None and os.getuid() == 0:
        run("apt-get", "update", "-q")
        kernel = kernel_package()
    if kernel is None:
        raise unavailable("apt knows no linux-image-amd64")
    options = ["-o", "APT::Sandbox::User=root"] if os.getuid() == 0 else []
    before = os.getcwd()
    os.chdir(folder)
    try:
        run("apt-get", "download", "-q", *options, kernel.group(1), *PACKAGES)
    finally:
        os.chdir(before)
    for package in sorted(glob.glob(os.path.join(folder, "*.deb"))):
        run("dpkg", "-x", package, os.path.join(folder, "root"))
    return os.path.join(folder, "root")


def compile_own(root):
    """Against the libibverbs of this machine, which is the guest's as well: both are Debian's. A compiler that finds
    mistakes is no reason to do without."""
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        raise unavailable("there is no %s" % compiler)
    subprocess.run([compiler, "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-o", os.path.join(root, "usr/bin/verbs_peer"),
                    PEER, "-libverbs"], check=True)
    subprocess.run([compiler, "-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", os.path.join(root, PRELOADED), OWN_PATH,
                    "-libverbs"], check=True)


def module_order(folder, wanted):
    """Files of the modules with all that they depend on, in the order in which to load them."""
    files = {}
    for where, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".ko"):
                files[name[:-3].replace("-", "_")] = os.path.join(where, name)
    order = []

    def visit(name):
        name = name.replace("-", "_")
        if name not in files or files[name] in order:
            return  # built in, or there already
        with open(files[name], "rb") as f:
            depends = re.search(rb"\0depends=([^\0]*)\0", f.read())
        for other in (depends.group(1).decode().split(",") if depends else []):
            visit(other)
        order.append(files[name])

    for name in wanted:
        visit(name)
    return order


def libraries(root, program):
    places = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"]
    loader = os.path.join(root, "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
    listing = run(loader, "--library-path", ":".join(os.path.join(root, p) for p in places), "--list", program)
    missing = re.search(r"(\S+) => not found", listing)
    if missing:
        raise unavailable("%s needs %s" % (program, missing.group(1)))
    return [p for p in re.findall(r"=> (/\S+)", listing) if p.startswith(root)]


class archive:
    """A cpio archive in the "newc" format."""

    def __init__(self):
        self.parts, self.number, self.folders = [], 0, set()

    def add(self, path, mode, data):
        for i in [i for i, c in enumerate(path) if c == "/"]:
            if path[:i] not in self.folders:
                self.folders.add(path[:i])
                self.entry(path[:i], stat.S_IFDIR | 0o755, b"")
        self.entry(path, mode, data)

    def entry(self, path, mode, data):
        self.number += 1
        name = path.encode() + b"\0"
        fields = (self.number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + name
        self.parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]

    def add_file(self, path, source):
        with open(source, "rb") as f:
            self.add(path, stat.S_IFREG | 0o755, f.read())

    def bytes(self):
        self.entry("TRAILER!!!", 0, b"")
        return b"".join(self.parts)


def initrd(root):
    a = archive()
    a.add("init", stat.S_IFREG | 0o755, INIT.encode())
    a.add("commands", stat.S_IFREG | 0o644, COMMANDS.encode())
    a.add_file("bin/busybox", os.path.join(root, "bin/busybox"))
    plugins = [p for p in glob.glob(os.path.join(root, "usr/lib/x86_64-linux-gnu/libibverbs/librxe-*.so"))]
    copied = {}
    for program in [os.path.join(root, t) for t in [*TOOLS, PRELOADED]] + plugins:
        for library in libraries(root, program):
            copied[os.path.relpath(library, root)] = library
        if program in plugins:
            copied[os.path.relpath(program, root)] = program
    for tool in [*TOOLS, PRELOADED]:
        copied["sbin/ip" if tool == "bin/ip" else tool] = os.path.join(root, tool)
    copied["lib/x86_64-linux-gnu/libgcc_s.so.1"] = os.path.join(root, "lib/x86_64-linux-gnu/libgcc_s.so.1")  # pthread_exit
    copied["lib64/ld-linux-x86-64.so.2"] = os.path.join(root, "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
    copied["etc/libibverbs.d/rxe.driver"] = os.path.join(root, "etc/libibverbs.d/rxe.driver")
    for path in sorted(copied):
        a.add_file(path, copied[path])
    names = []
    for module in module_order(os.path.join(root, "lib/modules"), MODULES):
        names.append("/modules.d/" + os.path.basename(module))
        a.add_file(names[-1][1:], module)
    a.add("modules", stat.S_IFREG | 0o644, "\n".join(names).encode() + b"\n")
    return a.bytes()


def kernel(root):
    """Name and bytes of the kernel: unpacked where that can be done, which spares an emulated machine the work."""
    with open(glob.glob(os.path.join(root, "boot/vmlinuz-*"))[0], "rb") as f:
        packed = f.read()
    at = packed.find(b"\xfd7zXZ\0")
    unpacked = b""
    if at > 0:
        try:
            unpacked = lzma.LZMADecompressor().decompress(packed[at:])
        except lzma.LZMAError:
            pass
    return ("vmlinux", unpacked) if unpacked[:4] == b"\x7fELF" else ("vmlinuz", packed)


def build(folder):
    os.makedirs(folder, exist_ok=True)
    scratch = tempfile.mkdtemp(prefix="rnic-guest-")
    try:
        root = download(scratch)
        compile_own(root)
        image = initrd(root)
        name, code = kernel(root)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    for file, data in ((name, code), ("initrd", image)):  # the initrd last: it says that all is there
        with open(os.path.join(folder, file + ".part"), "wb") as f:
            f.write(data)
        os.replace(os.path.join(folder, file + ".part"), os.path.join(folder, file))


def main():
    if len(sys.argv) != 2:
        raise SystemExit("usage: build_guest.py FOLDER")
    try:
        build(sys.argv[1])
    except unavailable as e:
        print("skipped: no guest can be made here: %s" % e)
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
