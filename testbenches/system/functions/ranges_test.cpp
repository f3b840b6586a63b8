// SPDX-License-Identifier: Apache-2.0
// Rows of queue pair numbers (ALLOC_RES with a count and an alignment), asked for and given back by several functions
// in long random sequences, against a plain list of the table.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "host_driver/resources.h"
#include "testbenches/system/functions/shared_card.h"
#include "testbenches/system/functions/statuses.h"

namespace rnic::system_test {
namespace {

using abi::opcode;
using host_driver::command_channel;
using host_driver::resource;

constexpr auto qp_kind = static_cast<std::uint32_t>(resource::qp);

unsigned ask(command_channel& channel, std::uint32_t count, std::uint32_t align, std::uint64_t* first) {
  const std::uint64_t in = std::uint64_t{align} << 32 | count;
  return channel.execute({opcode::alloc_res, qp_kind, abi::res_op::reserve, in, 0, first}) == 0 ? ok
                                                                                                : channel.last_status();
}

unsigned give(command_channel& channel, std::uint64_t first, std::uint32_t count) {
  const std::uint64_t in = std::uint64_t{count} << 32 | first;
  return channel.command(opcode::free_res, qp_kind, abi::res_op::reserve, in) == 0 ? ok : channel.last_status();
}

/// The table of queue pairs as a list of owners.
struct table {
  static constexpr int nobody = -1, hardware = -2;
  std::vector<int> owner;
  std::map<int, std::uint32_t> used;

  bool has_row(std::uint32_t count, std::uint32_t align) const {
    for (std::size_t at = 0; at + count <= owner.size(); at += align) {
      std::uint32_t run = 0;
      while (run < count && owner[at + run] == nobody) ++run;
      if (run == count) return true;
    }
    return false;
  }
  void set(std::uint64_t first, std::uint32_t count, int from, int to) {
    for (std::uint32_t i = 0; i < count; ++i) {
      int& o = owner[(first + i) & (owner.size() - 1)];
      ASSERT_EQ(o, from) << first + i;
      o = to;
    }
    if (from >= 0) used[from] -= count;
    if (to >= 0) used[to] += count;
  }
};

class Ranges : public testing::TestWithParam<unsigned> {};

TEST_P(Ranges, AreGivenExactlyWhenThereAreSuch) {
  constexpr int functions = 3;
  hosts::two_nodes_config c = shared_cards(functions);
  c.node.driver.log_num_qp = 12;
  hosts::two_nodes system(c);
  run(system, [&] {
    hosts::node& n = system.node_b();
    host_driver::icm_resources& tables = n.device(0).tables();
    const host_driver::resource_tracker& tracker = n.master().tracker();
    std::mt19937 random(GetParam());
    const auto below = [&random](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
    table plain;
    plain.owner.assign(tables.num_qps(), table::nobody);
    std::fill_n(plain.owner.begin(), tables.first_qpn(), table::hardware);
    ASSERT_EQ(tables.free(resource::qp), tables.num_qps() - tables.first_qpn()) << "the drivers have none of their own";
    const std::uint32_t quota = tracker.most(1)[qp_kind];
    struct piece {
      int function;
      std::uint64_t first;
      std::uint32_t count;
    };
    std::vector<piece> pieces;
    std::map<unsigned, unsigned> answers;
    unsigned in_pieces = 0;
    for (unsigned step = 0; step < 2500; ++step) {
      const int f = static_cast<int>(below(functions + 1));  // 0: the physical one, which takes them one by one
      const bool growing = step / 250 % 2 == 0;
      if (f == 0) {
        std::uint32_t number = 0;
        if (below(4) == 0 && tables.take(resource::qp, &number) == 0) {
          plain.set(number, 1, table::nobody, 0);
          pieces.push_back({0, number, 1});
        }
      } else if (pieces.empty() || below(10) < (growing ? 8u : 3u)) {
        const std::uint32_t count = 1 + below(below(3) == 0 ? quota / 3 : 8), align = 1u << below(8);
        std::uint64_t first = 0;
        const unsigned expected = plain.used[f] + count > quota ? internal_error
                                  : plain.has_row(count, align) ? ok
                                                                : exceed_lim;
        ASSERT_EQ(ask(n.device(static_cast<unsigned>(f)).commands(), count, align, &first), expected)
            << step << ": function " << f << " asks for " << count << " at " << align;
        ++answers[expected];
        if (expected == exceed_lim && tables.free(resource::qp) >= count) ++in_pieces;
        if (expected == ok) {
          ASSERT_EQ(first % align, 0u);
          plain.set(first, count, table::nobody, f);
          pieces.push_back({f, first, count});
        }
      } else {
        piece& p = pieces[below(static_cast<std::uint32_t>(pieces.size()))];
        const std::uint32_t part = below(2) == 0 ? p.count : 1 + below(p.count);
        const std::uint64_t at = p.first + p.count - part;
        if (p.function == 0) {
          tables.give_back(resource::qp, static_cast<std::uint32_t>(at));
        } else {
          const unsigned owner = static_cast<unsigned>(p.function), other = owner % functions + 1;
          EXPECT_EQ(give(n.device(other).commands(), at, part), bad_resource) << "another one's";
          EXPECT_EQ(give(n.device(owner).commands(), at, part + 512), bad_resource) << "more than it has in a row";
          ASSERT_EQ(give(n.device(owner).commands(), at, part), ok) << step;
        }
        plain.set(at, part, p.function, table::nobody);
        p.count -= part;
        if (p.count == 0) {
          p = pieces.back();
          pieces.pop_back();
        }
      }
      for (unsigned g = 1; g <= functions; ++g)
        ASSERT_EQ(tracker.used(g, resource::qp), plain.used[static_cast<int>(g)]);
      ASSERT_EQ(tables.free(resource::qp),
                static_cast<std::uint32_t>(std::count(plain.owner.begin(), plain.owner.end(), table::nobody)));
    }
    EXPECT_GT(answers[ok], 300u);
    EXPECT_GT(answers[internal_error], 20u);
    EXPECT_GT(in_pieces, 20u) << "there are as many, but not in a row";
    // What a reset takes back is one piece again.
    for (unsigned g = 1; g <= functions; ++g) initiate_reset(n.bus(g));
    n.bus(0).spend_ps(5000 * us);
    for (const piece& p : pieces)
      if (p.function == 0) tables.give_back(resource::qp, static_cast<std::uint32_t>(p.first));
    EXPECT_EQ(tables.free(resource::qp), tables.num_qps() - tables.first_qpn());
    for (unsigned g = 1; g <= functions; ++g) EXPECT_EQ(n.device(g).abandon(), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, Ranges, testing::Range(1u, 4u));

/// What cannot be: the answer, and that nothing was taken.
TEST(RangesOfFunctions, RequestsThatMakeNoSense) {
  hosts::two_nodes system(shared_cards(1));
  run(system, [&] {
    hosts::node& n = system.node_b();
    command_channel& channel = n.device(1).commands();
    const std::uint32_t before = n.master().tracker().used(1, resource::qp);
    std::uint64_t first = 0;
    EXPECT_EQ(ask(channel, 0, 1, &first), bad_param);
    EXPECT_EQ(ask(channel, 2, 3, &first), bad_param);
    EXPECT_EQ(ask(channel, 1, ~0u, &first), bad_param);
    EXPECT_EQ(ask(channel, 0xffffff, 1, &first), internal_error);
    EXPECT_EQ(ask(channel, 1, 1u << 31, &first), exceed_lim) << "number 0 is the hardware's";
    EXPECT_EQ(n.master().tracker().used(1, resource::qp), before);
    ASSERT_EQ(ask(channel, 4, 0, &first), ok);
    EXPECT_EQ(give(channel, first + 1, 2), ok) << "from the middle";
    EXPECT_EQ(give(channel, first, 4), bad_resource) << "all or nothing";
    EXPECT_EQ(give(channel, first, 1), ok);
    EXPECT_EQ(give(channel, first + 3, 1), ok);
  });
}

}  // namespace
}  // namespace rnic::system_test
