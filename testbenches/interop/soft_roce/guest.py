# SPDX-License-Identifier: Apache-2.0
"""A Linux guest with Soft-RoCE in QEMU, whose network card is a socket, and a shell in it."""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MAC = "52:54:00:00:00:0a"


class failed(Exception):
    pass


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def need_guest(folder):
    """The kernel and the image, made when they are not there or older than what makes them."""
    if shutil.which("qemu-system-x86_64") is None:
        skip("there is no qemu-system-x86_64 (Debian: qemu-system-x86)")
    maker, image = os.path.join(HERE, "build_guest.py"), os.path.join(folder, "initrd")
    sources = [maker] + [os.path.join(HERE, name) for name in ("verbs_peer.c", "verbs_words.h", "own_path.c")]
    if not os.path.exists(image) or os.path.getmtime(image) < max(map(os.path.getmtime, sources)):
        done = subprocess.run([sys.executable, maker, folder])
        if done.returncode != 0:
            sys.exit(done.returncode)


class guest:
    """`netdev`: QEMU's, without id. TCP from the guest to 10.0.2.2 reaches this machine's loopback; `ports` are those of
    this machine that lead to the same ports of the guest; `third`: QEMU's netdev of eth2, without id; `capture`: file
    for what eth0 sends and receives; `rate_mbps`: what the cards say of their lines, 0: nothing."""

    def __init__(self, image, netdev, ports=(), third=None, mac=MAC, capture=None, rate_mbps=0):
        self.folder = tempfile.mkdtemp(prefix="rnic-guest-")
        control = os.path.join(self.folder, "control")
        kernel = os.path.join(image, "vmlinux")
        kind, _, rest = netdev.partition(",")
        forward = "".join(",hostfwd=tcp:127.0.0.1:%d-:%d" % (p, p) for p in ports)
        # Where one processor is all that a machine can ever have, TCG leaves out the guest's barriers and locks (QEMU 7.2;
        # 8.1 keeps the barriers), though QEMU's own thread shares the rings of virtio with it. Once in some millions of
        # frames neither side then sees the other one's last word, and the card stands still for ever.
        command = ["qemu-system-x86_64", "-accel", os.environ.get("RNIC_QEMU_ACCEL", "tcg,thread=multi"), "-cpu", "max",
                   "-smp", "1,maxcpus=2", "-M", "pc", "-m", "384", "-nodefaults", "-no-reboot", "-display", "none",
                   "-kernel", kernel if os.path.exists(kernel) else os.path.join(image, "vmlinuz"),
                   "-initrd", os.path.join(image, "initrd"),
                   "-append", "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable random.trust_cpu=on",
                   "-serial", "file:" + os.path.join(self.folder, "console"),
                   "-chardev", "socket,id=control,path=%s,server=on,wait=off" % control, "-serial", "chardev:control",
                   "-netdev", "%s,id=n0,%s" % (kind, rest),
                   "-device", "virtio-net-pci,netdev=n0,romfile=,mac=" + mac,
                   "-netdev", "user,id=n1" + forward,
                   "-device", "virtio-net-pci,netdev=n1,romfile=,mac=52:54:00:00:01:0a"]
        if third is not None:
            command += ["-netdev", "%s,id=n2" % third, "-device", "virtio-net-pci,netdev=n2,romfile=,mac=52:54:00:00:02:0a"]
        if rate_mbps:
            command += ["-global", "virtio-net-pci.speed=%d" % rate_mbps, "-global", "virtio-net-pci.duplex=full"]
        if capture is not None:
            command += ["-object", "filter-dump,id=capture,netdev=n0,file=" + capture]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE)
        self.text = b""
        try:
            self.control = self.connect(control)
            self.until(b"@@READY", 120)
        except BaseException:
            self.stop()
            raise

    def connect(self, path):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise failed("QEMU ended: " + self.process.stderr.read().decode(errors="replace"))
            s = socket.socket(socket.AF_UNIX)
            try:
                s.connect(path)
                return s
            except OSError:
                s.close()
                time.sleep(0.05)
        raise failed("QEMU did not open its control socket")

    def until(self, mark, seconds):
        """Everything up to the line that begins with `mark`, and the rest of that line."""
        end = time.monotonic() + seconds
        while True:
            at = self.text.find(mark)
            line = self.text.find(b"\n", at)
            if at >= 0 and line >= 0:
                before, rest = self.text[:at], self.text[at + len(mark):line]
                self.text = self.text[line + 1:]
                return before.decode(errors="replace"), rest.decode().strip()
            self.control.settimeout(max(end - time.monotonic(), 0.01))
            try:
                got = self.control.recv(65536)
            except socket.timeout:
                raise failed("the guest did not answer within %d s: %s" % (seconds, self.text[-2000:]))
            if not got:
                raise failed("the guest ended: %s" % self.text[-2000:])
            self.text += got

    def run(self, command, seconds=60):
        """(status, output)."""
        self.control.sendall(command.encode() + b"\n")
        output, status = self.until(b"@@END", seconds)
        return int(status), output

    def start_server(self, command, port):
        """Returns when `command` listens at a TCP port. finish_server() gives its end."""
        self.start(command, "grep -q ':%04X .* 0A ' /proc/net/tcp /proc/net/tcp6" % port)

    def start(self, command, ready):
        """Returns when the command `ready` succeeds, or `command` has ended. finish_server() gives its end."""
        self.must("rm -f /tmp/status; (%s > /tmp/output 2>&1; echo $? > /tmp/status) &" % command)
        waits = "[ -e /tmp/status ] || %s" % ready
        self.must("i=0; until %s; do i=$((i+1)); [ $i = 200 ] && exit 1; usleep 50000; done" % waits, 60)

    def finish_server(self, seconds=60):
        self.must("i=0; until [ -e /tmp/status ]; do i=$((i+1)); [ $i = %d ] && exit 1; usleep 100000; done" %
                  (seconds * 10), seconds * 2)
        return self.run("cat /tmp/output; exit $(cat /tmp/status)")

    def must(self, command, seconds=60):
        status, output = self.run(command, seconds)
        if status != 0:
            raise failed("in the guest: %s: status %d\n%s" % (command, status, output))
        return output

    def set_up(self, mtu=4200, addresses=("10.0.0.1/24", "fd00::1/64")):
        """eth0 with its addresses, Soft-RoCE on it, and eth1 to this machine."""
        self.must("echo 0 > /proc/sys/net/ipv6/conf/all/accept_dad; echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad")
        self.must("/sbin/ip link set eth0 mtu %d" % mtu)
        for a in addresses:
            self.must("/sbin/ip addr add %s dev eth0 %s" % (a, "nodad" if ":" in a else ""))
        self.must("/sbin/ip link set eth0 up; /sbin/ip addr add 10.0.2.15/24 dev eth1; /sbin/ip link set eth1 up")
        self.must("/usr/bin/rdma link add rxe0 type rxe netdev eth0")
        self.must("for i in 1 2 3 4 5 6 7 8 9; do [ -e /dev/infiniband/uverbs0 ] && break; usleep 200000; done;"
                  " ls /dev/infiniband/uverbs0")

    def gid_index(self, gid):
        """Index of the row with this GID, written as the kernel does."""
        table = self.must("cd /sys/class/infiniband/rxe0/ports/1/gids; for i in 0 1 2 3 4 5 6 7; do echo $i $(cat $i); done")
        for line in table.splitlines():
            words = line.split()
            if len(words) == 2 and words[1] == gid:
                return int(words[0])
        raise failed("the guest has no GID %s:\n%s" % (gid, table))

    def card(self):
        """What the kernel says of eth0, for a failure's report: frames, queue, interrupts, neighbours, complaints."""
        return self.run("/sbin/ip -s -s link show eth0; /sbin/tc -s qdisc show dev eth0; grep virtio /proc/interrupts;"
                        " /sbin/ip neigh; cat /proc/uptime; dmesg | tail -n 5")[1]

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)
