// SPDX-License-Identifier: Apache-2.0
// GID match of a port, parallel: a comparator for each entry, then an encoder that takes the lowest.
//
// Stream contract (rtl/README.md) at the look-ups, of which one is taken in each cycle; results are not held up. The
// result of a look-up is valid two cycles after it was taken:
//
//   cycle      n         n+1        n+2
//   look-up    taken     match_q    result_q
//
// An entry that is written in cycle n is found by look-ups from n + 1 on. All outputs come from registers.

module gid_match #(
  parameter int unsigned Entries = 128,
  // Bytes of the GID that are compared, from the first one on.
  parameter int unsigned Compared = 16
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  // Look-up
  input  logic         valid_i,
  output logic         ready_o,
  input  logic [127:0] dgid_i,  // byte 0 in [7:0]
  input  logic         v2_i,    // RoCE v2

  // Firmware's port
  input  logic         write_i,
  input  logic [6:0]   write_index_i,
  input  logic [127:0] write_id_i,
  input  logic         write_v2_i,
  input  logic         write_valid_i,

  // Result
  output logic         result_valid_o,
  output logic         hit_o,
  output logic [6:0]   index_o
);

  localparam int unsigned Bits = 8 * Compared;

  logic [Entries-1:0]       valid_q, v2_q;
  logic [Entries-1:0][127:0] id_q;
  // Stage 1: one bit an entry
  logic [Entries-1:0]       match_d, match_q;
  logic                     matched_q;
  // Stage 2: the result
  logic                     result_valid_q, hit_q;
  logic [6:0]               index_d, index_q;

  assign ready_o = 1'b1;

  always_comb begin
    for (int unsigned i = 0; i < Entries; i++) begin
      match_d[i] = valid_q[i] && v2_q[i] == v2_i && id_q[i][Bits-1:0] == dgid_i[Bits-1:0];
    end
  end

  always_comb begin
    index_d = '0;
    for (int unsigned i = Entries; i > 0; i--) begin
      if (match_q[i-1]) index_d = 7'(i - 1);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q        <= '0;
      match_q        <= '0;
      matched_q      <= 1'b0;
      result_valid_q <= 1'b0;
      hit_q          <= 1'b0;
      index_q        <= '0;
    end else begin
      if (write_i) valid_q[write_index_i] <= write_valid_i;
      matched_q <= valid_i;
      if (valid_i) match_q <= match_d;
      result_valid_q <= matched_q;
      hit_q          <= matched_q && match_q != '0;
      index_q        <= index_d;
    end
  end

  // Without reset: what is not valid does not matter.
  always_ff @(posedge clk_i) begin
    if (write_i) begin
      v2_q[write_index_i] <= write_v2_i;
      id_q[write_index_i] <= write_id_i;
    end
  end

  assign result_valid_o = result_valid_q;
  assign hit_o          = hit_q;
  assign index_o        = index_q;

endmodule
