// SPDX-License-Identifier: Apache-2.0
// Verbs objects: the structures of <infiniband/verbs.h> with what the driver knows about them. A pointer to one of
// these is a pointer to the public structure, so ibv_qp_init_attr, ibv_send_wr and the rest take them as they are.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "host_driver/bus_if.h"
#include "host_driver/gid_rules.h"

namespace rnic::host_driver {

/// Entries of the translation table that describe a buffer.
struct mtt_range {
  std::uint32_t first = 0;
  std::uint32_t count = 0;  ///< 0: none
  unsigned order = 0;
  std::uint64_t pinned = 0;  ///< pages of the program's that its limit was charged with
};

/// A word or two of host memory through which software tells the device its index (data plane A.2).
struct doorbell_record {
  std::uint8_t* pointer = nullptr;
  std::uint64_t bus_address = 0;
  bool pinned = false;  ///< of a program
};

/// Requests that libibverbs has no names for: opcode IBV_WR_DRIVER1, and one of the structures below. Masked atomics
/// and fast registration are kernel verbs (IB_WR_MASKED_ATOMIC_CMP_AND_SWP, IB_WR_MASKED_ATOMIC_FETCH_AND_ADD,
/// IB_WR_REG_MR).
enum class driver_opcode : std::uint8_t { masked_compare_swap, masked_fetch_add, fast_register };
struct driver_wr : ibv_send_wr {
  explicit driver_wr(driver_opcode what) : ibv_send_wr{}, operation(what) { opcode = IBV_WR_DRIVER1; }
  driver_opcode operation;
};
/// Operands are in wr.atomic.
struct masked_atomic_wr : driver_wr {
  using driver_wr::driver_wr;
  std::uint64_t swap_mask = 0;         ///< compare and swap: bits that are replaced
  std::uint64_t compare_add_mask = 0;  ///< bits that are compared; fetch and add: last bit of each field
};

/// Flags of a send request on a raw packet queue pair, beside ibv_send_flags (libibverbs has no names for them): a tag
/// is put into the frame, with the TCI in the low half of imm_data, network order.
inline constexpr unsigned send_insert_ctag = 1u << 16, send_insert_stag = 1u << 17;

/// What a completion of a raw packet queue pair says beside ibv_wc (ibv_wc_read_cvlan and the like of extended queues).
struct ethernet_receive {
  bool ctag = false, stag = false;
  std::uint16_t tci = 0;
  std::uint32_t hash = 0;  ///< of a queue pair that spreads
  std::uint16_t status = 0, checksum = 0;
  std::uint8_t encoding = 0;
};

/// Flag of a receive completion beside ibv_wc_flags: the message lies in the receive request that it has ended, at
/// queue_pair::last_received(), until that place of the queue is posted again; the buffers are as they were.
inline constexpr unsigned wc_inline_receive = 1u << 16;

/// How a queue pair spreads received frames over others (ibv_rwq_ind_table, ibv_rx_hash_conf).
struct queue_pair;
struct spreading {
  std::vector<queue_pair*> targets;       ///< a power of two of them, with consecutive numbers
  const queue_pair* otherwise = nullptr;  ///< for frames that are not hashed; nullptr: the first target
  std::uint8_t fields = 0;                ///< abi::rss: what is hashed
  bool toeplitz = true;                   ///< else XOR
  std::array<std::uint8_t, 40> key{};
  unsigned port = 1;
};
struct memory_region;
/// Gives the pages of alloc_fast_reg_mr's region a meaning and a new key (the kernel's ib_reg_wr): set_fast_reg_pages
/// first. The key differs from the region's in its low byte only; memory_region::lkey and rkey are the caller's to set.
struct fast_register_wr : driver_wr {
  fast_register_wr() : driver_wr(driver_opcode::fast_register) {}
  memory_region* region = nullptr;
  std::uint32_t key = 0;
  int access = 0;
};
/// Management datagrams: their length, and the Q_Key of QP1 (IBA volume 1, 13.4.2 and 10.2.5).
inline constexpr std::uint32_t mad_bytes = 256, gsi_qkey = 0x80010000;

struct protection_domain : ibv_pd {
  protection_domain() : ibv_pd{} {}
  std::uint32_t pdn = 0;
  unsigned users = 0;
};

struct memory_region : ibv_mr {
  memory_region() : ibv_mr{} {}
  /// Address of the first byte as work requests name it: the bus address unless reg_mr was given another, so that what
  /// goes over the wire is the same in every run.
  std::uint64_t iova = 0;
  std::uint32_t index = 0;  ///< of the protection table entry, with generation bits
  mtt_range mtt;
  // Fast registration only: the list that the device reads, and what it describes (iova, length, page size).
  bus_if::dma_memory page_list{};
  std::uint32_t max_pages = 0;
  unsigned log_page = 12;
};

struct memory_window : ibv_mw {
  memory_window() : ibv_mw{} {}
  std::uint32_t index = 0;
};

struct queue_pair;
struct shared_receive_queue;
struct completion_queue;

/// Joins XRC queue pairs that receive and the shared receive queues that their peers may name.
struct xrc_domain : ibv_xrcd {
  xrc_domain() : ibv_xrcd{} {}
  std::uint32_t xrcdn = 0;
  unsigned users = 0;
  protection_domain* pd = nullptr;  ///< of the queue pairs; nothing is registered in it (mlx4_ib_alloc_xrcd)
  completion_queue* cq = nullptr;   ///< of the queue pairs; nothing completes there
};
constexpr bool is_xrc(ibv_qp_type type) { return type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV; }
inline constexpr std::uint32_t xrc_qpn_bit = 1u << 23;  ///< in numbers of queue pairs that receive (ib/qp.c)

struct completion_queue : ibv_cq {
  completion_queue() : ibv_cq{} {}
  std::uint32_t cqn = 0;
  std::uint32_t entries = 0;  ///< power of two
  std::uint32_t entry_bytes = 32;
  std::uint32_t consumer = 0;
  unsigned arm_sn = 1;
  unsigned vector = 0;  ///< completion vector
  unsigned users = 0;
  bool event_queued = false;
  bus_if::dma_memory buffer{};
  mtt_range mtt;
  doorbell_record record;  ///< set_ci, arm
  queue_pair* last_qp = nullptr;

  std::uint8_t* entry(std::uint32_t index) const {
    return buffer.pointer + std::size_t{index & (entries - 1)} * entry_bytes + (entry_bytes - 32);
  }
};

/// A ring of work requests.
struct work_queue {
  std::vector<std::uint64_t> wr_ids;
  std::uint32_t head = 0, tail = 0;  ///< run on without wrapping
  std::uint32_t count = 0;           ///< entries, power of two; 0: no such queue
  std::uint32_t max_post = 0;        ///< entries that may be posted at a time
  std::uint32_t max_sge = 0;
  unsigned log_stride = 4;  ///< log2 of bytes of an entry
  std::size_t offset = 0;   ///< in the buffer

  /// Work requests posted and not completed leave no room for `more` and one (libmlx4 wq_overflow).
  bool overflows(std::uint32_t more) const { return head - tail + more >= max_post; }
};

struct shared_receive_queue : ibv_srq {
  shared_receive_queue() : ibv_srq{} {}
  std::uint32_t srqn = 0;
  std::vector<std::uint64_t> wr_ids;
  std::uint32_t count = 0, max_sge = 0;
  unsigned log_stride = 5;
  /// The list of free entries as the device finds it in the buffer, which others can write: the driver reads its own.
  std::vector<std::uint16_t> next;
  std::vector<bool> posted_entries;  ///< and which are not in it
  std::uint32_t head = 0, tail = 0;  ///< ends of the list
  std::uint16_t posted = 0;
  unsigned users = 0;
  bus_if::dma_memory buffer{};
  mtt_range mtt;
  doorbell_record record;
  xrc_domain* domain = nullptr;               ///< XRC only,
  completion_queue* receive_queue = nullptr;  ///< as this: its completions go there
  std::uint8_t* entry(std::uint32_t index) const { return buffer.pointer + (std::size_t{index} << log_stride); }
};

/// What an asynchronous event is about, if not a queue pair or a port.
constexpr bool of_cq(ibv_event_type t) { return t == IBV_EVENT_CQ_ERR; }
constexpr bool of_srq(ibv_event_type t) { return t == IBV_EVENT_SRQ_ERR || t == IBV_EVENT_SRQ_LIMIT_REACHED; }

/// What a special queue pair is where there are virtual functions (device::create_gsi): a function's QP1, the other end
/// of it with the physical function's driver, or QP1 of the wire, which that driver has.
enum class paravirtual_role : std::uint8_t { none, proxy, tunnel, wire };

struct queue_pair : ibv_qp {
  queue_pair() : ibv_qp{} {}
  work_queue sq, rq;
  std::uint32_t spare_wqes = 0;  ///< never posted: what the device may prefetch beyond the last one
  std::uint32_t max_inline = 0;
  std::uint32_t signal_bits = 0;  ///< control flags for every request (sq_sig_all)
  bus_if::dma_memory buffer{};
  mtt_range mtt;
  doorbell_record record;  ///< receive doorbell record
  completion_queue* send_queue = nullptr;
  completion_queue* receive_queue = nullptr;
  shared_receive_queue* shared = nullptr;
  protection_domain* domain = nullptr;
  xrc_domain* xrc = nullptr;
  ibv_qp_cap caps{};
  bool kernel = false;  ///< takes what only kernel verbs post (fast registration); to be set before RTS
  unsigned port = 0;    ///< 1-based; 0: not set yet
  unsigned access_flags = 0, reads_taken = 0;  ///< qp_access_flags and max_dest_rd_atomic, as they were set last
  std::uint32_t remote_qpn = 0;
  /// Registration of the VLAN of its path, and of that of the path that a transition is about to give it
  /// (ib/mlx4_ib.h: mlx4_roce_smac_vlan_info).
  struct port_entry {
    unsigned port = 0, index = 0;
  };
  std::optional<port_entry> vlan, next_vlan;
  bool inline_receive = false;           ///< a short message stays in its receive request (mlx4dv: inl_recv_sz)
  queue_pair* roce_v2_sender = nullptr;  ///< QP1: what it sends RoCE v2 with
  std::uint32_t mad_psn = 0;             ///< special queue pairs: of the next datagram
  paravirtual_role role = paravirtual_role::none;
  std::uint32_t tunnel_qpn = 0;         ///< of a proxy
  bus_if::dma_memory tunnel_headers{};  ///< the same: what comes in front of datagrams, by place of the queue
  bool sends_mads() const { return roce_v2_sender != nullptr || role == paravirtual_role::proxy; }
  /// Raw packet queue pair, to be set before INIT.
  struct ethernet_options {
    bool strip_vlan = false;  ///< IBV_QP_CREATE_CVLAN_STRIPPING
    bool keep_fcs = false;    ///< IBV_QP_CREATE_SCATTER_FCS
    /// Its port is one of the adapter, also below a bond: a ring of a network interface (MLX4_QP_BIT_FPP).
    bool physical_port = false;
    std::uint8_t priority = 0;
    /// What a hypervisor's driver sets for the function that owns the queue pair (adapter control plane 6.7).
    std::uint8_t fl = 0, vlan_control = 0, feup = 0, fvl_rx = 0, vlan_index = 0;
  };
  ethernet_options ethernet;
  /// Of a bonded device, to be set before INIT: even: virtual port 1, odd: 2 (product documents: flow_entropy); else
  /// the ports take turns.
  std::optional<std::uint32_t> flow_entropy;
  std::uint16_t udp_source = 0;  ///< RoCE v2 source port to use from RTS on; 0: made of the QP numbers

  std::uint8_t* send_entry(std::uint32_t index) const {
    return buffer.pointer + sq.offset + (std::size_t{index & (sq.count - 1)} << sq.log_stride);
  }
  std::uint8_t* receive_entry(std::uint32_t index) const {
    return buffer.pointer + rq.offset + (std::size_t{index & (rq.count - 1)} << rq.log_stride);
  }
  /// Of the receive completion that was polled last.
  const std::uint8_t* last_received() const { return receive_entry(rq.tail - 1); }
};

/// A rule by which frames come to a raw packet queue pair.
struct steering_flow : ibv_flow {
  steering_flow() : ibv_flow{} {}
  queue_pair* qp = nullptr;
  ibv_flow_attr_type type = IBV_FLOW_ATTR_NORMAL;
  unsigned port = 1;
  mac_address mac{};                 ///< IBV_FLOW_ATTR_NORMAL, B0
  std::vector<std::uint64_t> rules;  ///< registrations with the device, DMFS
};

/// Address vector as it goes into the datagram segment of a WQE.
struct address_handle : ibv_ah {
  address_handle() : ibv_ah{} {}
  std::uint8_t av[32] = {};
  std::uint16_t vlan = 0;
  mac_address mac{};
  ibv_gid_type type = IBV_GID_TYPE_ROCE_V1;  ///< of its GID
  std::optional<mac_address> source;         ///< of QP1 of the wire: a virtual function's, in place of the port's
};

}  // namespace rnic::host_driver
