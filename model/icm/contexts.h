// SPDX-License-Identifier: Apache-2.0
// Contexts as the hardware keeps them, on chip and in ICM. Software sees other layouts (model/abi); firmware
// translates. The image in ICM is the bytes of these structures: a private format, as the published interface leaves it
// to the device (adapter control plane, 5.3). All are trivially copyable and start as all zero bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace rnic::icm {

/// QP states, coded as in the QP context of the published interface.
enum class qp_state : std::uint8_t {
  reset = 0,
  init = 1,
  rtr = 2,
  rts = 3,
  sq_error = 4,
  sqd = 5,
  error = 6,
  sq_draining = 7
};
/// Service types, same source. The last two are the chip's own: MLX queue pairs whose path says Ethernet, and those
/// that only spread received frames over others.
enum class service : std::uint8_t { rc = 0, uc = 1, rd = 2, ud = 3, xrc = 6, mlx = 7, ethernet = 14, rss = 15 };
/// Requests are acknowledged and repeated.
constexpr bool is_reliable(service s) { return s == service::rc || s == service::xrc; }
/// A request that fails takes the send queue with it, and the QP goes on receiving (IBA 10.3.1.6).
constexpr bool breaks_send_queue_only(service s) { return s == service::uc || s == service::ud; }
/// Requests end as flushed, without being executed.
constexpr bool flushes(qp_state s) { return s == qp_state::error || s == qp_state::sq_error; }

/// How packets of a connected QP are addressed; each half of a QP has its own copy.
struct path {
  std::uint8_t dmac[6];
  std::uint8_t smac_index;  ///< port MAC table
  std::uint8_t gid_index;   ///< port GID table (mgid_index)
  std::uint8_t remote_gid[16];
  std::uint8_t hop_limit;
  std::uint8_t traffic_class;
  std::uint8_t vlan_index;   ///< port VLAN table, used when vlan_valid
  std::uint8_t flags;        ///< path_flag_*
  std::uint32_t flow_label;  ///< 20 bits
  std::uint16_t udp_source;  ///< RoCE v2 source port (entropy)
  std::uint8_t priority;     ///< SL: egress queue, PCP when tagged
  std::uint8_t port;         ///< 0-based
  std::uint8_t pkey_index;
  std::uint8_t static_rate;  ///< code of the address path, 0: the port's rate
  std::uint8_t counter_index;
  std::uint8_t mtu_code;  ///< 1..5: 256..4096
};
/// Bit of gid_index, of a datagram queue pair: the rest is the first entry of those that its address handles number.
inline constexpr std::uint8_t path_gid_is_base = 0x80;
/// own_vlan: only frames of the VLAN of entry vlan_index, or untagged ones where that is none, are for the queue pair.
/// physical_port: `port` is a port of the adapter, whatever the map of virtual ports says.
inline constexpr std::uint8_t path_flag_vlan = 1, path_flag_roce_v2 = 2, path_flag_loopback = 4, path_flag_own_vlan = 8,
                              path_flag_physical_port = 16;
static_assert(sizeof(path) == 40);

/// What the path of an Ethernet queue pair has in the place of the remote GID (adapter data plane A.7).
struct ethernet_rules {
  std::uint8_t flags;         ///< ethernet_rule_*
  std::uint8_t vlan_control;  ///< kinds of frames that the QP may not send (6:4) or get (2:0): tagged, priority tagged,
                              ///< untagged
};
inline constexpr std::uint8_t ethernet_rule_keep_vlan = 1, ethernet_rule_keep_fcs = 2, ethernet_rule_own_source = 4,
                              ethernet_rule_own_vlan = 8, ethernet_rule_hide_vlan = 16;
inline ethernet_rules rules_of(const path& p) { return {p.remote_gid[0], p.remote_gid[1]}; }
inline void set_rules(path& p, ethernet_rules r) {
  p.remote_gid[0] = r.flags;
  p.remote_gid[1] = r.vlan_control;
}
constexpr std::uint32_t mtu_bytes(std::uint8_t code) { return 128u << code; }

/// Requester's half of a QP context: 128 bytes at offset 0 of the QPC entry.
struct requester_context {
  std::uint32_t qpn;  ///< full local QPN; 0 in an entry that was never written
  std::uint32_t remote_qpn;
  qp_state state;
  service type;
  std::uint8_t log_sq_size;    ///< log2 of send WQEs
  std::uint8_t log_sq_stride;  ///< log2 of bytes
  path dest;
  std::uint32_t pd;
  std::uint32_t uar;
  std::uint32_t cqn;
  std::uint32_t qkey;
  std::uint8_t vport;  ///< whose rate limits it too (SET_VPORT_QOS); 0: none
  std::uint8_t reserved[3];
  std::uint64_t sq_address;  ///< mtt_address of the QP's buffer: ICM byte offset from the MTT base
  std::uint32_t sq_offset;   ///< of the send queue in the buffer, bytes
  std::uint8_t log_page;     ///< log2 of bytes of a buffer page
  std::uint8_t ack_timeout;  ///< 4.096 us * 2^n, 0 = none
  std::uint8_t retry_limit, rnr_retry_limit;
  std::uint8_t retries_left, rnr_retries_left;
  std::uint8_t log_max_rd_atomic;
  std::uint8_t flags;            ///< requester_flag_*
  std::uint32_t next_psn;        ///< of the next new packet
  std::uint32_t unacked_psn;     ///< oldest not acknowledged
  std::uint32_t next_wqe;        ///< index of the next WQE to execute, counts without wrapping at the ring
  std::uint32_t message_offset;  ///< bytes of WQE next_wqe already sent
  std::uint16_t outstanding;     ///< messages waiting for their acknowledgement
  std::uint8_t rd_outstanding;   ///< READ and atomic requests under way
  std::uint8_t ack_request_log;  ///< an acknowledgement is asked for at least every 2^n packets
  std::uint32_t drain_end;      ///< WQEs before this index had begun when the QP was last halted: SQ_DRAINING ends here
  std::uint16_t function;       ///< owner: whose memory the queue and its buffers are
  std::uint16_t rate_limit;     ///< of the QP context: unit and value, 0: none
  std::int16_t receives_told;   ///< the responder has, behind the message of its last answer; -1: less than none
  std::uint16_t receives_used;  ///< messages under way that take one
};
inline constexpr std::uint8_t requester_flag_reserved_lkey = 1, requester_flag_fast_reg = 2,
                              requester_flag_unlimited = 4;  ///< the responder does not count its receives
static_assert(sizeof(requester_context) == 128 && std::is_trivially_copyable_v<requester_context>);

/// Responder's half: 128 bytes at offset 128 of the QPC entry.
struct responder_context {
  std::uint32_t qpn;
  std::uint32_t remote_qpn;
  qp_state state;
  service type;
  std::uint8_t log_rq_size;    ///< log2 of receive WQEs
  std::uint8_t log_rq_stride;  ///< log2 of bytes; 0: no receive queue of its own
  path dest;
  std::uint32_t pd;
  std::uint32_t cqn;
  std::uint32_t srqn;  ///< bit 24: valid. XRC: queue of the message under way, or of the last one; cqn is its too
  std::uint32_t qkey;  ///< XRC: domain
  std::uint32_t message_bytes;  ///< received so far of the SEND or RDMA WRITE under way
  std::uint64_t rq_address;     ///< mtt_address of the QP's buffer
  std::uint64_t db_record;      ///< bus address of the receive doorbell record
  std::uint32_t rq_offset;      ///< of the receive queue in the buffer, bytes
  std::uint32_t expected_psn;
  std::uint32_t msn;          ///< 24 bits
  std::uint32_t write_rkey;   ///< RDMA WRITE under way: key,
  std::uint64_t write_va;     ///< next address,
  std::uint32_t remaining;    ///< bytes still to come of the message under way
  std::uint16_t rq_consumed;  ///< receive WQEs taken
  std::uint16_t rq_posted;    ///< doorbell record as last read
  std::uint8_t access;        ///< responder_access_*
  std::uint8_t rnr_timer;     ///< min_rnr_timer code
  std::uint8_t log_max_rd_atomic;
  std::uint8_t log_page;
  std::uint8_t in_message : 4;  ///< operation of the message under way: 0 none, 1 SEND, 2 WRITE
  std::uint8_t owed : 4;        ///< answer that waits behind requests in the ring of rdma_resources: responder_owes_*
  std::uint8_t flags;           ///< responder_flag_*
  std::uint16_t function;       ///< owner
};
inline constexpr std::uint8_t responder_access_write = 1, responder_access_read = 2, responder_access_atomic = 4;
inline constexpr std::uint8_t responder_flag_nak_sent = 1, responder_flag_comm_est = 2,
                              responder_flag_reserved_lkey = 4, responder_flag_last_wqe = 8,
                              responder_flag_inline_receive = 16, responder_flag_no_credits = 32,
                              responder_flag_reads_held = 64,  ///< requests wait in the ring of rdma_resources,
    responder_flag_reads_late = 128;                           ///< answers of later requests went before them
inline constexpr std::uint8_t responder_owes_nothing = 0, responder_owes_ack = 1, responder_owes_sequence_nak = 2,
                              responder_owes_rnr_nak = 3;
static_assert(sizeof(responder_context) <= 128 && std::is_trivially_copyable_v<responder_context>);

/// How a queue pair of service `rss` spreads frames (adapter data plane A.8.3). It lies in fields of the responder's
/// half that such a queue pair, which has no queues of its own, does not need.
struct rss_rules {
  std::uint32_t base_qpn, base_qpn_udp, default_qpn;
  std::uint8_t log_size;  ///< of the table: queue pairs from the base on
  std::uint8_t toeplitz;  ///< 1; 0: XOR
  std::uint8_t flags;     ///< rss_flag_*
  std::uint8_t key[40];
};
inline constexpr std::uint8_t rss_flag_ipv4 = 0x20, rss_flag_tcp_ipv4 = 0x10, rss_flag_ipv6 = 0x08,
                              rss_flag_tcp_ipv6 = 0x04, rss_flag_udp_ipv4 = 0x02, rss_flag_udp_ipv6 = 0x01;
inline void set_rss(responder_context& c, const rss_rules& r) {
  static_assert(sizeof(path) == sizeof(r.key));
  std::memcpy(&c.dest, r.key, sizeof r.key);
  c.write_rkey = r.base_qpn;
  c.remaining = r.base_qpn_udp;
  c.message_bytes = r.default_qpn;
  c.write_va = std::uint64_t{r.log_size} << 16 | std::uint64_t{r.toeplitz} << 8 | r.flags;
}
inline rss_rules rss_of(const responder_context& c) {
  rss_rules r{c.write_rkey,
              c.remaining,
              c.message_bytes,
              static_cast<std::uint8_t>(c.write_va >> 16),
              static_cast<std::uint8_t>(c.write_va >> 8),
              static_cast<std::uint8_t>(c.write_va),
              {}};
  std::memcpy(r.key, &c.dest, sizeof r.key);
  return r;
}

/// What the responder keeps of READ and atomic requests in the RDMA resource table: the QP's 16 entries of 64 bytes, as
/// many as it may have requests under way. An entry is taken when a request is put aside that finds no place on chip,
/// until it is fetched again, or when an atomic was executed, whose answer may have to be repeated. The oldest answer
/// gives its entry up where none is free: what waits and the answers that the peer may still ask for are no more than
/// the entries.
struct rdma_resources {
  static constexpr unsigned depth = 16;
  enum class kind : std::uint8_t {
    none,
    read,    ///< a request that waits: READ,
    answer,  ///< (the answer of an atomic)
    compare_swap,
    fetch_add
  };
  struct entry {
    std::uint32_t psn : 24;     ///< of the request
    std::uint32_t what : 8;     ///< kind
    std::uint32_t msn : 24;     ///< a request: of its response
    std::uint32_t age : 8;      ///< an answer: which one it is, modulo 256
    std::uint32_t key, length;  ///< a request
    std::uint64_t value;        ///< a request: virtual address; answer: what was in memory
    std::uint32_t pd : 24;      ///< a request
    std::uint32_t answers : 8;  ///< of entry 0: how many answers there have been, modulo 256
    std::uint32_t span;         ///< the model's record of the message's way, nothing of the hardware's
    // Operands of an atomic, as on the wire: a masked fetch and add has its boundaries in `compare`.
    std::uint64_t swap_add, compare, swap_mask, compare_mask;

    bool is(kind k) const { return what == static_cast<std::uint32_t>(k); }
    bool is_atomic() const { return is(kind::compare_swap) || is(kind::fetch_add); }
    bool waits() const { return is(kind::read) || is_atomic(); }
  };
  entry entries[depth];

  /// A free entry, or the one of the oldest answer; none when requests wait in all.
  entry* take() {
    entry* oldest = nullptr;
    for (entry& e : entries) {
      if (e.is(kind::none)) return &e;
      if (e.is(kind::answer) && (oldest == nullptr || older(e, *oldest))) oldest = &e;
    }
    return oldest;
  }
  /// What an atomic found in memory. Nothing is kept when requests wait in all entries.
  void keep_answer(std::uint32_t psn, std::uint64_t found) {
    entry* const e = take();
    if (e == nullptr) return;
    e->psn = psn & 0xffffff;  // width of the field
    e->what = static_cast<std::uint32_t>(kind::answer);
    e->age = entries[0].answers;
    e->value = found;
    entries[0].answers = (entries[0].answers + 1) & 0xff;
  }
  /// The newest answer with this PSN, or nothing.
  const entry* find_answer(std::uint32_t psn) const {
    const entry* newest = nullptr;
    for (const entry& e : entries)
      if (e.is(kind::answer) && e.psn == psn && (newest == nullptr || older(*newest, e))) newest = &e;
    return newest;
  }

 private:
  bool older(const entry& x, const entry& y) const {
    return ((entries[0].answers - x.age) & 0xffu) > ((entries[0].answers - y.age) & 0xffu);
  }
};
static_assert(sizeof(rdma_resources::entry) == 64 && sizeof(rdma_resources) == 1024 &&
              std::is_trivially_copyable_v<rdma_resources>);

/// Completion queue, 64 bytes.
struct cq_context {
  std::uint32_t cqn;
  std::uint8_t valid;     ///< 0: software owns it
  std::uint8_t log_size;  ///< log2 of CQEs
  std::uint8_t log_page;
  std::uint8_t flags;       ///< cq_flag_*
  std::uint64_t address;    ///< mtt_address of the buffer
  std::uint64_t db_record;  ///< bus address of {set_ci, arm}
  std::uint32_t page_offset;
  std::uint32_t producer;  ///< running index, 24 bits significant
  std::uint32_t consumer;  ///< last set_ci known
  std::uint32_t uar;
  std::uint16_t period_us, max_count;  ///< moderation
  std::uint8_t arm;                    ///< 0 not armed, 1 next solicited, 2 next
  std::uint8_t arm_sn;                 ///< sequence number of the last arm that fired
  std::uint8_t armed_sn;               ///< sequence number of the arm that is in force
  std::uint8_t status;                 ///< 0 ok, 9 overflow
  std::uint32_t last_solicited;        ///< running index behind the last solicited completion
  std::uint32_t notified;              ///< producer index at the last event
  std::uint16_t eqn;                   ///< the completion block's number of it
  std::uint16_t function;              ///< owner
};
inline constexpr std::uint8_t cq_flag_overrun_ignore = 1, cq_flag_collapsed = 2;
static_assert(sizeof(cq_context) == 64 && std::is_trivially_copyable_v<cq_context>);

/// Event queue, 64 bytes.
struct eq_context {
  std::uint32_t eqn;
  std::uint8_t valid;
  std::uint8_t log_size;
  std::uint8_t log_page;
  std::uint8_t state;     ///< 9 armed, 10 fired (codes of the published context)
  std::uint64_t address;  ///< mtt_address of the buffer
  std::uint32_t page_offset;
  std::uint32_t producer, consumer;
  std::uint16_t vector;  ///< MSI-X
  std::uint16_t function;
  std::uint16_t period_us, max_count;
  std::uint8_t reserved[24];
};
static_assert(sizeof(eq_context) == 64 && std::is_trivially_copyable_v<eq_context>);

/// Shared receive queue, 64 bytes.
struct srq_context {
  std::uint32_t srqn;
  std::uint8_t valid;
  std::uint8_t log_size;
  std::uint8_t log_stride;
  std::uint8_t log_page;
  std::uint64_t address;
  std::uint64_t db_record;
  std::uint32_t page_offset;
  std::uint32_t pd;
  std::uint32_t cqn;       ///< XRC
  std::uint16_t next_wqe;  ///< index of the WQE to take next (linked list)
  std::uint16_t consumed, posted;
  std::uint16_t limit;  ///< SRQ_LIMIT watermark, 0 = off
  std::uint16_t xrcd;
  std::uint16_t function;  ///< owner
  std::uint8_t error;      ///< cannot be used any more: its entries could not be read, or their links are wrong
  std::uint8_t reserved[11];
};
static_assert(sizeof(srq_context) == 64 && std::is_trivially_copyable_v<srq_context>);

/// Entry of the multicast group table in its published form, big-endian (adapter data plane B.6). Software says how
/// long the entries of its table are: of shorter ones so much is read, and the rest says nothing; longer ones have as
/// many members.
struct multicast_group {
  static constexpr unsigned max_members = 256;
  static constexpr std::uint32_t shortest_bytes = 128;
  std::uint8_t bytes[32 + 4 * max_members];
};

}  // namespace rnic::icm
