// @ts-check
// Rows that a reader has put off: this browser keeps which, and until when. Nothing is answered by it, and no one else sees it.

import { again } from './answer.js';
import { make, say } from './dom.js';
import { base } from './place.js';
import { store, stored } from './viewed.js';

const NAME = 'provost-put-off';

/** For how long a row is put off, in milliseconds. */
const FOR = 60 * 60 * 1000;

/** How long before its end a row comes back in any case, in milliseconds. */
const BEFORE_END = 5 * 60 * 1000;

/** So many rows are kept. */
const KEPT = 500;

/** @returns {Record<string, number>} */
function kept() {
  try {
    const read = JSON.parse(stored(NAME) || '{}');
    const good = Object.entries(read).filter(([, until]) => typeof until === 'number' && until > Date.now());
    return Object.fromEntries(/** @type {[string, number][]} */ (good));
  } catch {
    return {};
  }
}

/** The name of a row among those of all repositories. @param {any} row */
const nameOf = (row) => `${base} ${row.key}`;

/** When a row ends by itself. @param {any} row */
function endOf(row) {
  const at = row.cells.find((/** @type {any} */ it) => it.is === 'until')?.at;
  return at ? Date.parse(at) : Infinity;
}

/** Whether a row is put off at the moment. @param {any} row */
export function isPutOff(row) {
  return (kept()[nameOf(row)] ?? 0) > Date.now();
}

/** Puts a row off for an hour, or until shortly before its end. @param {any} row */
export function putOff(row) {
  const until = Math.min(Date.now() + FOR, endOf(row) - BEFORE_END);
  if (until <= Date.now()) {
    say('It ends soon, and is not put off.');
    return false;
  }
  const all = Object.entries({ ...kept(), [nameOf(row)]: until }).sort((a, b) => b[1] - a[1]).slice(0, KEPT);
  store(NAME, JSON.stringify(Object.fromEntries(all)));
  say('Put off in this browser.');
  return true;
}

let timer = 0;

/** Has the view asked for again when the first of these rows comes back. @param {any[]} rows */
export function comeBack(rows) {
  const all = kept();
  const first = Math.min(...rows.map((row) => all[nameOf(row)] ?? Date.now()));
  clearTimeout(timer);
  timer = setTimeout(again, Math.max(1000, first - Date.now()));
}

/** Shows all rows again. */
export function bringBack() {
  store(NAME, '{}');
}

/** The button that puts a row off. @param {() => void} work */
export function putOffNode(work) {
  const button = make('button', { type: 'button', 'data-does': 'put-off' }, 'Put off for an hour');
  button.onclick = work;
  return button;
}
