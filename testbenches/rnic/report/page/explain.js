// SPDX-License-Identifier: Apache-2.0
// Results of `rnic explain`.
import { axis, figure, tip } from './charts.js';
import { lyingBars } from './curves.js';
import { el, table, tiles } from './dom.js';
import { exact, number, unitOf, withUnit } from './numbers.js';

const gains = (entry) => (entry.result.with_more || []).filter((r) => typeof r.gain_percent === 'number');
const signed = (v) => `${v > 0 ? '+' : ''}${number(v, 3)} %`;

export const kind = {
  title: 'What more would give',
  label: (entry) => entry.result.metric,

  summary(entry) {
    const all = gains(entry), r = entry.result;
    if (all.length === 0) return 'no resource could be given more of.';
    const best = all.reduce((a, b) => (b.gain_percent > a.gain_percent ? b : a));
    const next = (r.next || []).find((n) => typeof n.value === 'number');
    return `${withUnit(r.metric)} is ${number(r.value)}${r.limited_by ? `, limited by ${r.limited_by}` : ''}; ${signed(best.more_percent)} of ${best.resource} gives ${signed(best.gain_percent)}${next ? `, twice of ${next.resource} ${signed(next.gain_percent)}` : ''}.`;
  },

  show(entry) {
    const r = entry.result, all = gains(entry);
    const bars = [...all].sort((a, b) => b.gain_percent - a.gain_percent);
    const shown = bars.filter((b) => Math.abs(b.gain_percent) >= 0.1);
    const failed = (r.with_more || []).filter((b) => b.error);
    return [
      tiles([
        { label: r.metric, value: number(r.value), unit: unitOf(r.metric), note: r.limited_by && `limited by ${r.limited_by}` },
        ...(r.next || []).filter((n) => typeof n.value === 'number').map((n) => ({ label: `with ${signed(n.more_percent)} of ${n.resource}`, value: number(n.value), unit: unitOf(r.metric), note: n.limited_by && `limited by ${n.limited_by}` }))
      ]),
      shown.length ? figure({
        id: `${entry.id}-gains`, title: 'Gain by resource',
        says: `What more of each resource gives to ${r.metric}, and how much more it was. Less than 0.1 %: ${bars.length - shown.length} of ${bars.length} resources${failed.length ? `; ${failed.length} runs failed` : ''}.`,
        height: 64 + 26 * shown.length,
        option: (t, width) => {
          const option = lyingBars(t, width, {
            bars: shown.map((b) => `${b.resource} (${signed(b.more_percent)})`), parts: [{ name: 'gain', colour: t.colours[0], values: shown.map((b) => b.gain_percent) }],
            title: 'gain (%)', text: signed, ends: shown.map((b) => signed(b.gain_percent))
          });
          option.series[0].data = shown.map((b) => ({ value: b.gain_percent, itemStyle: { color: b.gain_percent < 0 ? t.bad : t.colours[0] } }));
          return { ...option, xAxis: axis(t, 'gain (%)', { axisLabel: { formatter: (v) => number(v) } }), tooltip: { trigger: 'axis', axisPointer: { type: 'shadow' }, formatter: (rows) => tip(rows[0].name, [[rows[0].color, 'gain', signed(rows[0].value)], ...shown[rows[0].dataIndex].changed.map((c) => [null, c, ''])]) } };
        },
        table: table('Gain by resource', [
          { name: 'resource', value: (b) => b.resource }, { name: 'more (%)', value: (b) => b.more_percent, text: exact },
          { name: withUnit(r.metric), value: (b) => b.value, text: exact }, { name: 'gain (%)', value: (b) => b.gain_percent, text: exact },
          { name: 'limited by', value: (b) => b.limited_by }, { name: 'what was changed', value: (b) => (b.changed || []).join(', ') }, { name: 'failed', value: (b) => b.error }
        ], r.with_more || [])
      }).root : null,
      (r.steps || []).map((s) => [
        el('h4', {}, `From ${number(s.from)} to ${number(s.to)} bytes: +${number(s.more_ns, 6)} ns`),
        el('ul', {}, (s.reasons || []).map((reason) => el('li', {}, reason))),
        table(`Stages that take longer, ${number(s.from)} to ${number(s.to)} bytes`, [
          { name: 'stage', value: (g) => g.stage }, { name: 'block', value: (g) => g.block }, { name: 'more (ns)', value: (g) => g.more_ns, text: exact },
          { name: 'waits for', value: (g) => (g.wait === 'none' ? null : g.wait) }, { name: 'remark', value: (g) => (g.new ? 'new' : g.gone ? 'gone' : null) }
        ], s.stages || [])
      ])
    ];
  }
};
