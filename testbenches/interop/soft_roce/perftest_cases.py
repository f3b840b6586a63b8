# SPDX-License-Identifier: Apache-2.0
"""The tools of perftest in the guest, as client of the model and as its server."""
from bench import GID4, GID6, GUEST4, MODEL4, PORT, SECONDS

# Of a case: tool, options of both sides.
CASES = [
    ("ib_write_bw", {"size": 65536, "n": 20}),
    ("ib_write_bw", {"size": 1, "n": 100}),
    ("ib_write_bw", {"size": 3000, "n": 40, "mtu": 256, "qps": 4}),
    ("ib_write_bw", {"size": 100001, "n": 10, "mtu": 4096, "both": True}),
    ("ib_write_bw", {"size": 5000, "n": 20, "type": "UC"}),
    ("ib_write_lat", {"size": 2, "n": 100}),
    ("ib_write_lat", {"size": 5000, "n": 30, "mtu": 512}),
    ("ib_write_lat", {"size": 64, "n": 300, "type": "UC"}),
    ("ib_read_bw", {"size": 65536, "n": 20}),
    ("ib_read_bw", {"size": 777, "n": 40, "mtu": 256, "qps": 3, "both": True}),
    ("ib_read_lat", {"size": 2, "n": 100}),
    ("ib_read_lat", {"size": 9000, "n": 20, "mtu": 4096}),
    ("ib_send_bw", {"size": 65536, "n": 20}),
    ("ib_send_bw", {"size": 900, "n": 40, "qps": 4, "both": True}),
    ("ib_send_bw", {"size": 5000, "n": 20, "type": "UC", "mtu": 2048}),
    ("ib_send_bw", {"size": 1000, "n": 40, "type": "UD"}),
    ("ib_send_lat", {"size": 2, "n": 100}),
    ("ib_send_lat", {"size": 3000, "n": 30, "type": "UC"}),
    ("ib_send_lat", {"size": 4096, "n": 30, "type": "UD", "mtu": 4096}),
    ("ib_atomic_bw", {"n": 200}),
    ("ib_atomic_bw", {"n": 150, "qps": 3, "atomic": "CMP_AND_SWAP"}),
    ("ib_atomic_lat", {"n": 100}),
    ("ib_atomic_lat", {"n": 50, "atomic": "CMP_AND_SWAP"}),
]
CASES_MORE = [  # every size, over rdma_cm, for a time, and options of the guest's that the model is not told of
    ("ib_write_bw", {"n": 5, "mtu": 4096, "all": True}),
    ("ib_send_bw", {"n": 8, "type": "UD", "all": True}),
    ("ib_send_bw", {"size": 900, "n": 40, "qps": 4, "cm": True, "both": True}),
    ("ib_read_bw", {"size": 9000, "n": 40, "qps": 3, "cm": True, "mtu": 4096}),
    ("ib_atomic_bw", {"n": 100, "cm": True}),
    ("ib_write_lat", {"n": 100, "cm": True}),
    ("ib_send_lat", {"size": 500, "n": 50, "type": "UD", "talk": True}),
    ("ib_send_lat", {"size": 64, "D": 2}),
    ("ib_write_bw", {"size": 3000, "n": 40, "guest": "-l 4 -t 16 -I 64"}),
    ("ib_send_bw", {"size": 64, "n": 40, "qps": 2, "guest": "--use-srq -r 40 -Q 2"}),
]
CASES6 = [
    ("ib_write_bw", {"size": 8192, "n": 20}),
    ("ib_read_lat", {"size": 3000, "n": 20}),
    ("ib_send_bw", {"size": 1000, "n": 30, "type": "UD"}),
    ("ib_atomic_lat", {"n": 30}),
]
CASES_VLAN = [
    ("ib_write_bw", {"size": 3000, "n": 20, "priority": 4}),
    ("ib_read_bw", {"size": 3000, "n": 20, "priority": 4}),
    ("ib_send_lat", {"size": 500, "n": 20, "priority": 4, "type": "UC"}),
    ("ib_atomic_bw", {"n": 50, "priority": 4}),
]
CASES_LOSS = [
    ("ib_write_bw", {"size": 20000, "n": 50, "qps": 2}),
    ("ib_read_bw", {"size": 20000, "n": 50, "qps": 2}),
    ("ib_read_bw", {"size": 700, "n": 300, "mtu": 256, "both": True}),
    ("ib_send_bw", {"size": 20000, "n": 50, "qps": 2}),
    ("ib_send_lat", {"size": 3000, "n": 100}),
    ("ib_atomic_bw", {"n": 300}),
    ("ib_atomic_lat", {"n": 100, "atomic": "CMP_AND_SWAP"}),
]
CASES_READS = [  # many READs under way, each of many packets
    ("ib_read_bw", {"size": 65536, "n": 100}),
    ("ib_read_bw", {"size": 65536, "n": 100, "outs": 3}),
    ("ib_read_bw", {"size": 20000, "n": 100, "outs": 16, "cm": True}),
]


def words(tool, o, ack_timeout):
    """(words of the model, words of the guest's tool)."""
    model, guest = ["--app", tool], ["-F"]
    mtu = o.get("mtu", 1024)
    model += ["--mtu", str(mtu), "--timeout", str(ack_timeout)]
    guest.append("-m %d -u %d" % (mtu, ack_timeout))
    for key, option, letter in (("n", "--iterations", "-n"), ("D", "--seconds", "-D"), ("size", "--size", "-s"), ("qps", "--qps", "-q"),
                                ("outs", "--outs", "-o"), ("type", "--connection", "-c"),
                                ("atomic", "--atomic", "-A"), ("priority", "--priority", "-S")):
        if key in o:
            model += [option, str(o[key])]
            guest.append("%s %s" % (letter, o[key]))
    for key, option, letter in (("both", "--bidirectional", "-b"), ("all", "--all", "-a"), ("cm", "--rdma-cm", "-R"),
                                ("talk", "--talk-rdma-cm", "-z")):
        if o.get(key):
            model.append(option)
            guest.append(letter)
    return model + o.get("model", []), guest + [o.get("guest", "")]


def sizes(o):
    """How many sizes are tested."""
    return 1 if not o.get("all") else o.get("mtu", 1024).bit_length() - 1 if o.get("type") == "UD" else 23


def counts(b, tool, o, client):
    """What is wrong with the model's numbers, as lines."""
    run = b.result["runs"][0]
    if "D" in o:
        return [] if max(run["sent"], run["received"]) > 0 or "_lat" in tool and not client else ["no messages"]
    all_ = o["n"] * o.get("qps", 1) * sizes(o)
    in_turns, both = tool in ("ib_write_lat", "ib_send_lat"), o.get("both")
    sends = client or both or in_turns
    wrong = []
    if run["sent"] != (all_ if sends else 0):
        wrong.append("%d messages sent" % run["sent"])
    if tool.startswith("ib_send") and run["received"] != (all_ if not client or both or in_turns else 0):
        wrong.append("%d messages received" % run["received"])
    if tool.startswith("ib_atomic") and (not client or both):
        expected = all_ if o.get("atomic") is None else 0  # the tool compares with zero and swaps in zero
        if run["counted"] != expected:
            wrong.append("the counters are at %s" % run["counted"])
    receives = not client or both or in_turns
    if (tool.startswith("ib_read") and (client or both)) or (tool[:8] in ("ib_write", "ib_send_") and receives):
        if not run["memory"]:
            wrong.append("no memory was looked at")
        wrong += b.wrong_memory(o["n"], o.get("mtu", 1024))
    return wrong


def commands(b, tool, o, gid, model_gid):
    """(words of the model, the guest's command up to the port, whether they meet over rdma_cm)."""
    model, guest = words(tool, o, b.ack_timeout)
    if model_gid is not None:
        model += ["--gid-index", str(model_gid)]
    command = "timeout %d /usr/bin/%s -d rxe0 -x %d %s -p " % (SECONDS, tool, b.guest.gid_index(gid), " ".join(guest))
    return model, command, o.get("cm") or o.get("talk")


def guest_is_client(b, name, tool, o, gid, model_gid, serve):
    model, command, managed = commands(b, tool, o, gid, model_gid)
    side = b.serve(*model, *serve, "--server", "--port", str(PORT + 2))
    there = "%d %s" % (PORT + 2, MODEL4 if managed else "10.0.2.2")
    b.tool_verdict(name + ", the guest is client", side, b.guest.run(command + there, SECONDS * 2),
                   lambda _: counts(b, tool, o, False))


def guest_is_server(b, name, tool, o, gid=GID4, model_gid=None, serve=(), meanwhile=lambda: None):
    """`meanwhile` runs beside the test."""
    model, command, managed = commands(b, tool, o, gid, model_gid)
    if managed:
        b.guest.start(command + str(PORT), "/usr/bin/rdma resource show cm_id | grep -q LISTEN")
    else:
        b.guest.start_server(command + str(PORT), PORT)
    side = b.serve(*model, *serve, "--client", GUEST4 if managed else "127.0.0.1", "--port", str(PORT))
    meanwhile()
    b.tool_verdict(name + ", the guest is server", side, b.guest.finish_server(SECONDS * 2),
                   lambda _: counts(b, tool, o, True))


def one(b, name, tool, o, gid, model_gid, serve):
    guest_is_client(b, name, tool, o, gid, model_gid, serve)
    guest_is_server(b, name, tool, o, gid, model_gid, serve)


def named(tool, o):
    text = [tool]
    for key, word in (("type", "%s"), ("D", "%d s"), ("atomic", "%s"), ("size", "%d bytes"), ("mtu", "MTU %d"), ("qps", "%d queue pairs"),
                      ("outs", "%d under way")):
        if key in o:
            text.append(word % o[key])
    for key, word in (("both", "both ways"), ("all", "all sizes"), ("cm", "rdma_cm"), ("talk", "talk over rdma_cm")):
        if o.get(key):
            text.append(word)
    return ", ".join(text + ([o["guest"]] if "guest" in o else []))


def run(b, cases, gid=GID4, model_gid=None, where="", serve=()):
    for tool, o in cases:
        one(b, named(tool, o) + where, tool, o, gid, model_gid, serve)


def options(b):
    run(b, CASES_MORE)


def perftest(b):
    run(b, CASES)
    run(b, CASES6, GID6, 5, " over IPv6")
