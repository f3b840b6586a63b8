// SPDX-License-Identifier: Apache-2.0
// Ports of switches, of results with a network.
import { figure } from './charts.js';
import { lyingBars } from './curves.js';
import { select, table } from './dom.js';
import { about_bytes, count, exact, gbps, number } from './numbers.js';

const dropsOf = (p) => Object.entries(p).filter(([key]) => key.startsWith('drop_')).reduce((a, [, v]) => a + v, 0);
const metrics = {
  most_queued_bytes: { title: 'longest queue', axis: 'longest queue (bytes)', text: about_bytes },
  tx_gbps: { title: 'rate out', axis: 'rate out of the switch (Gb/s)', text: gbps },
  tx_pause: { title: 'pauses sent', axis: 'pause frames sent', text: number },
  rx_pause: { title: 'pauses received', axis: 'pause frames received', text: number },
  marked: { title: 'frames marked', axis: 'frames marked (ECN)', text: number },
  drops: { title: 'frames dropped', axis: 'frames dropped', text: number }
};

export function ports(entry) {
  const all = (entry.result.ports || []).map((p) => ({ ...p, drops: dropsOf(p), name: `${p.switch} to ${p.to}` }));
  if (all.length === 0) return null;
  const shown = all.slice(0, 48);
  const choice = { metric: 'most_queued_bytes' };
  const f = figure({
    id: `${entry.id}-ports`, title: 'Ports of the switches',
    says: () => {
      const m = metrics[choice.metric], highest = shown.reduce((a, b) => (b[choice.metric] > a[choice.metric] ? b : a));
      const drops = all.reduce((a, p) => a + p.drops, 0), pauses = all.reduce((a, p) => a + (p.tx_pause || 0), 0);
      return `Highest, by ${m.title}: ${highest.name}, ${m.text(highest[choice.metric])}. ${count(pauses, 'pause frame')} sent, ${count(drops, 'frame')} dropped.`;
    },
    height: 64 + 26 * shown.length,
    controls: [select('Show', Object.entries(metrics).map(([key, m]) => [key, m.title]), choice.metric, (v) => { choice.metric = v; f.update(); })],
    option: (t, width) => lyingBars(t, width, {
      bars: shown.map((p) => p.name), parts: [{ name: metrics[choice.metric].title, colour: t.colours[0], values: shown.map((p) => p[choice.metric]) }],
      title: metrics[choice.metric].axis, text: metrics[choice.metric].text, ends: shown.map((p) => metrics[choice.metric].text(p[choice.metric])),
      short: choice.metric === 'most_queued_bytes' ? about_bytes : number
    }),
    table: table('Ports of the switches', [
      { name: 'port', value: (p) => p.name }, { name: 'rate out (Gb/s)', value: (p) => p.tx_gbps, text: exact },
      { name: 'longest queue (bytes)', value: (p) => p.most_queued_bytes, text: exact },
      { name: 'pauses sent', value: (p) => p.tx_pause, text: exact }, { name: 'pauses received', value: (p) => p.rx_pause, text: exact },
      { name: 'marked', value: (p) => p.marked, text: exact }, { name: 'dropped', value: (p) => p.drops, text: exact }
    ], all)
  });
  return f.root;
}
