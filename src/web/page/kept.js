// @ts-check
// Filters that a reader keeps, for each view, in this browser. Each is a link to the same view with the filter in its address.

import { make, say } from './dom.js';
import { base } from './place.js';
import { store, stored } from './viewed.js';

const NAME = 'provost-filters';

/** So many are kept for a view, the newest. */
const KEPT = 12;

/** @returns {Record<string, string[]>} */
function all() {
  try {
    const read = JSON.parse(stored(NAME) || '{}');
    const is = (/** @type {any} */ it) => Array.isArray(it) && it.every((one) => typeof one === 'string');
    return Object.fromEntries(Object.entries(read).filter(([, it]) => is(it)));
  } catch {
    return {};
  }
}

/** @param {string} view @param {string[]} filters */
function keep(view, filters) {
  store(NAME, JSON.stringify({ ...all(), [view]: filters.slice(-KEPT) }));
}

/**
 * Shows the kept filters of a view below its filter, and the button that keeps the one that is typed.
 * @param {string} view
 * @param {HTMLElement} form
 * @param {HTMLInputElement} field
 */
export function keepFilters(view, form, field) {
  const list = make('ul', { class: 'kept', 'aria-label': 'Filters that are kept' });
  const button = make('button', { type: 'button', 'data-does': 'keep-filter' }, 'Keep this filter');
  const draw = () => {
    list.replaceChildren(...(all()[view] ?? []).map((text) => {
      const drop = make('button', { type: 'button', 'aria-label': `Keep no more: ${text}` }, '×');
      drop.onclick = () => {
        keep(view, (all()[view] ?? []).filter((it) => it !== text));
        draw();
        field.focus();
      };
      const to = `${base}${location.pathname.slice(base.length)}?q=${encodeURIComponent(text)}`;
      return make('li', {}, make('a', { href: to }, text), drop);
    }));
    list.hidden = list.childElementCount === 0;
  };
  button.onclick = () => {
    const text = field.value.trim();
    if (!text) {
      field.focus();
      say('Type a filter first.');
      return;
    }
    keep(view, [...(all()[view] ?? []).filter((it) => it !== text), text]);
    draw();
    say(`Kept in this browser: ${text}`);
  };
  form.append(button, list);
  draw();
}
