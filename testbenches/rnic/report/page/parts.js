// SPDX-License-Identifier: Apache-2.0
// Stages of a message by the part of the way that they belong to.

const light = {
  first: { host: '#0b3c6f', pcie: '#1f6fb2', adapter: '#5aa5dc', port: '#a5cdee' },
  second: { port: '#fbcf9d', adapter: '#ef9640', pcie: '#c65e12', host: '#7a3406' }, wire: '#7d838d', network: '#7a5fb0', other: '#4d7a00'
};
const dark = {
  first: { host: '#2f6fae', pcie: '#5597d6', adapter: '#8bbdec', port: '#c8e1f8' },
  second: { port: '#fde2c2', adapter: '#f6b468', pcie: '#e38434', host: '#b25a1e' }, wire: '#a1a7b0', network: '#a88fe0', other: '#b5d65a'
};

const nameOf = { host: 'Host', pcie: 'PCIe', adapter: 'Adapter', port: 'Port' };

function place(stage) {
  const words = stage.block.split('.');
  if (stage.stage === 'wire') return { key: 'wire', name: 'Wire' };
  if (words[1] === 'root_complex' || words[1] === 'processor') return { what: 'host', host: words[0] };
  if (words[1] !== 'adapter') return { key: 'network', name: 'Cables and switches' };
  if (words[2] === 'pcie') return { what: 'pcie', host: words[0] };
  if (/^port\d/.test(words[2] || '')) return { what: 'port', host: words[0] };
  return { what: 'adapter', host: words[0] };
}

/**
 * The parts of the way in its order, for several messages: {key, name, colour(dark), of(stage)}. The host whose stage
 * comes first is the one that sends.
 */
export function partsOf(listsOfStages) {
  const hosts = [];
  const found = new Map();
  for (const stages of listsOfStages)
    for (const s of stages) {
      const p = place(s);
      if (p.host && !hosts.includes(p.host)) hosts.push(p.host);
      const key = p.key || `${p.host} ${p.what}`;
      if (!found.has(key)) found.set(key, { key, name: p.name || `${nameOf[p.what]} ${p.host}`, ...p });
    }
  const order = (p) => {
    if (p.key === 'wire') return 10;
    if (p.key === 'network') return 11;
    const side = hosts.indexOf(p.host);
    const way = ['host', 'pcie', 'adapter', 'port'].indexOf(p.what);
    return side === 0 ? way : 20 * side + (3 - way);
  };
  const parts = [...found.values()].sort((a, b) => order(a) - order(b));
  for (const p of parts) {
    p.colour = (isDark) => {
      const c = isDark ? dark : light;
      const side = p.host === undefined ? null : ['first', 'second'][hosts.indexOf(p.host)];
      return side ? c[side][p.what] : c[p.key] || c.other;
    };
  }
  return parts;
}

export const keyOf = (stage) => {
  const p = place(stage);
  return p.key || `${p.host} ${p.what}`;
};
