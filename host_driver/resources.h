// SPDX-License-Identifier: Apache-2.0
// Numbers of objects, and the context memory behind them.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "host_driver/bitmap.h"
#include "host_driver/bus_if.h"
#include "host_driver/command_channel.h"
#include "host_driver/config.h"
#include "host_driver/icm.h"
#include "host_driver/profile.h"

namespace rnic::host_driver {

/// Codes of ALLOC_RES (adapter control plane 8.4).
enum class resource : std::uint8_t {
  qp = 0,
  cq = 1,
  srq = 2,
  xrcd = 3,
  mpt = 4,
  mtt = 5,
  mac = 6,
  vlan = 7,
  counter = 9
};

/// Where a driver gets its objects' numbers from. Results are 0 or a negative errno.
class resources_if {
 public:
  virtual ~resources_if() = default;
  /// A number of qp, cq, srq, xrcd or mpt, with what hardware needs of context memory; `wanted`: this very one (EBUSY
  /// when its place is taken).
  virtual int take(resource what, std::uint32_t* number, const std::uint32_t* wanted = nullptr) = 0;
  virtual void give_back(resource what, std::uint32_t number) = 0;
  /// 2^order translation entries, aligned to that.
  virtual int take_mtts(unsigned order, std::uint32_t* first) = 0;
  virtual void give_back_mtts(std::uint32_t first, unsigned order) = 0;
  /// Entries as hardware reads them, in the processor's byte order.
  virtual int write_mtts(std::uint32_t first, const std::uint64_t* entries, std::uint32_t count) = 0;
};

/// The physical function's: tables in memory that the driver lends to the device, and the kernel's allocators (net/
/// alloc.c, net/icm.c).
class icm_resources : public resources_if {
 public:
  static constexpr std::uint32_t special_qps = 8;

  /// Maps what is reserved of all tables (net/main.c:mlx4_init_icm).
  int map_tables(bus_if& bus, command_channel& channel, const config& cfg, const device_caps& caps,
                 const icm_profile& profile);
  /// Everything is free.
  void start(const config& cfg, const device_caps& caps, const icm_profile& profile);
  void clean_up();

  int take(resource what, std::uint32_t* number, const std::uint32_t* wanted = nullptr) override;
  void give_back(resource what, std::uint32_t number) override;
  int take_mtts(unsigned order, std::uint32_t* first) override;
  void give_back_mtts(std::uint32_t first, unsigned order) override;
  int write_mtts(std::uint32_t first, const std::uint64_t* entries, std::uint32_t count) override;

  /// Virtual functions' part: take() leaves so many more numbers alone (fewer, where negative). Who takes one for a
  /// function lowers it first.
  void leave(resource what, std::int64_t numbers) { left_[static_cast<unsigned>(what)] += numbers; }
  /// Ranges of `entries` translation entries each for functions 1 to `functions`, in the upper half of the table, so
  /// that nobody's small pieces are in the way of another one's large ones. 0, or -ENOMEM: the half is in use, or too
  /// small.
  int divide_mtts(unsigned functions, std::uint32_t entries);
  /// Numbers that nobody has.
  std::uint32_t free(resource what) { return numbers(what).free(); }
  /// As take_mtts, of the function's range; give_back_mtts() knows whose it is.
  int take_mtts_of(unsigned function, unsigned order, std::uint32_t* first);

  /// `count` queue pairs with consecutive numbers from a multiple of `align` (a power of two, or 0) on, or -ENOMEM:
  /// there may be as many, but not in a row (net/alloc.c: mlx4_bitmap_alloc_range).
  int take_qps(std::uint32_t count, std::uint32_t align, std::uint32_t* first);
  /// First of the eight special queue pairs, which can be taken by number only, as those of functions behind them
  /// (model/abi/paravirtual.h), where there are any.
  std::uint32_t base_special_qpn() const { return base_special_qpn_; }
  /// First number for everybody.
  std::uint32_t first_qpn() const { return first_qpn_; }
  std::uint32_t num_qps() const { return num_qps_; }
  std::uint32_t num_mpts() const { return num_mpts_; }
  /// Memory that the tables have at present.
  std::uint64_t lent_bytes() const;

 private:
  bool is_special(std::uint32_t qpn) const { return qpn - base_special_qpn_ < special_qps; }
  bitmap& numbers(resource what);
  int take_mtts_in(buddy& ranges, unsigned order, std::uint32_t* first);
  buddy& ranges_of(std::uint32_t mtt);
  int take_contexts(resource what, std::uint32_t number);
  void put_contexts(resource what, std::uint32_t number);

  icm_table cmpt_qp_, cmpt_srq_, cmpt_cq_, cmpt_eq_, eqc_, mtts_, dmpts_, qpc_, auxc_, altc_, rdmarc_, cqc_, srqc_,
      mcg_;
  bitmap xrcdns_, cqns_, srqns_, qpns_, mpt_indices_;
  buddy mtt_ranges_;
  std::vector<buddy> function_mtts_;                   // of functions from 1 on
  std::uint32_t functions_first_ = 0, mtts_each_ = 0;  // where theirs begin, and how many each has
  std::array<std::int64_t, 5> left_{};                 // to functions, by resource
  std::uint32_t num_qps_ = 0, num_mpts_ = 0, base_special_qpn_ = 0x200, first_qpn_ = 0x208;
};

/// A virtual function's: all is asked of the physical function's driver (ALLOC_RES, FREE_RES, WRITE_MTT).
class asked_resources : public resources_if {
 public:
  explicit asked_resources(command_channel& channel) : channel_(channel) {}
  /// A queue pair by number: one of those that the function has from the beginning (model/abi/paravirtual.h).

  int take(resource what, std::uint32_t* number, const std::uint32_t* wanted = nullptr) override;
  void give_back(resource what, std::uint32_t number) override;
  int take_mtts(unsigned order, std::uint32_t* first) override;
  void give_back_mtts(std::uint32_t first, unsigned order) override;
  int write_mtts(std::uint32_t first, const std::uint64_t* entries, std::uint32_t count) override;

 private:
  command_channel& channel_;
  std::set<std::uint32_t> by_number_;  // queue pairs
};

}  // namespace rnic::host_driver
