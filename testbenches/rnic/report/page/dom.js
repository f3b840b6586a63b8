// SPDX-License-Identifier: Apache-2.0
// Elements of the page. Texts of results come in as text nodes, never as HTML.

/** An element with attributes, handlers (functions by the name of their event) and children (elements or texts). */
export function el(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') e.addEventListener(name, value);
    else if (value !== undefined && value !== null && value !== false) e.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity)) if (child !== undefined && child !== null && child !== false) e.append(child);
  return e;
}

/**
 * A table in a frame that scrolls and can be reached by keyboard. Columns are {name, value(row), text(value, row)?}; a
 * cell has what the result says in data-value. The first column is the row's heading.
 */
export function table(caption, columns, rows) {
  const cell = (column, row, first) => {
    const value = column.value(row);
    const there = value !== undefined && value !== null;
    const text = !there ? '–' : column.text ? column.text(value, row) : String(value);
    const attributes = { class: typeof value === 'number' ? 'number' : null, 'data-value': there ? String(value) : null };
    return first ? el('th', { scope: 'row', ...attributes }, text) : el('td', attributes, text);
  };
  const numeric = (column) => rows.some((row) => typeof column.value(row) === 'number');
  return el('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': `Table: ${caption}` },
    el('table', {}, el('caption', {}, caption),
      el('thead', {}, el('tr', {}, columns.map((c) => el('th', { scope: 'col', class: numeric(c) ? 'number' : null }, c.name)))),
      el('tbody', {}, rows.map((row) => el('tr', { class: row.failed ? 'failed' : null },
        columns.map((column, i) => cell(column, row, i === 0)))))));
}

export function details(summary, ...children) {
  return el('details', {}, el('summary', {}, summary), ...children);
}

let numberOfSelects = 0;
/** A list to choose from, with its label: options are [value, text]. */
export function select(label, options, chosen, changed) {
  const id = `select-${++numberOfSelects}`;
  const list = el('select', { id, change: () => changed(list.value) },
    options.map(([value, text]) => el('option', { value, selected: String(value) === String(chosen) }, text)));
  return el('span', { class: 'control' }, el('label', { for: id }, label), list);
}

/** Figures at a glance: [{label, value, unit, note}]. */
export function tiles(list) {
  return el('dl', { class: 'tiles' }, list.filter((t) => t).map((t) =>
    el('div', {}, el('dt', {}, t.label), el('dd', {}, el('span', { class: String(t.value).length < 10 ? 'figure number' : 'figure' }, t.value), t.unit ? ` ${t.unit}` : '',
      t.note ? el('span', { class: 'note' }, t.note) : null))));
}
