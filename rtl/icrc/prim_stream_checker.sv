// SPDX-License-Identifier: Apache-2.0
// Asserts the stream contract of rtl/README.md on one ready/valid pair. Attached with bind, never instantiated.

module prim_stream_checker #(
  parameter int unsigned Width = 1
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             valid_i,
  input logic             ready_i,
  input logic [Width-1:0] payload_i
);

  valid_is_held: assert property (
    @(posedge clk_i) disable iff (!rst_ni) valid_i && !ready_i |=> valid_i
  ) else $error("valid fell before ready");

  payload_is_stable: assert property (
    @(posedge clk_i) disable iff (!rst_ni) valid_i && !ready_i |=> $stable(payload_i)
  ) else $error("payload changed while it waited");

  valid_is_low_in_reset: assert property (
    @(posedge clk_i) !rst_ni |-> !valid_i
  ) else $error("valid during reset");

endmodule
