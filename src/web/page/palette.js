// @ts-check
// One field that leads everywhere: to a view, to another repository, and to tasks, messages and events by the words in them.

import { byId, make, say } from './dom.js';
import { base, overAll, path } from './place.js';

/** How long nothing is typed before the daemon is asked, in milliseconds; and how much is shown of its answer. */
const PAUSE = 150;
const SHOWN = 8;

/** @typedef {{ name: string, what: string, to: string }} Way */

/** @type {Way[]} */
let ways = [];
let at = 0;
let timer = 0;
/** On the page over all repositories: each of them. @type {Way[]} */
let others = [];
/** Whether it is only about another repository. */
let switching = false;
/** Tells a late answer from the one that is waited for. */
let asked = 0;

const field = () => /** @type {HTMLInputElement} */ (byId('palette-field'));
const dialog = () => /** @type {HTMLDialogElement} */ (byId('palette'));

/** Views whose name has what is typed. @param {string} text @returns {Way[]} */
function views(text) {
  const low = text.toLowerCase();
  const links = [...document.querySelectorAll('nav.views a')].filter((it) => it instanceof HTMLAnchorElement);
  const named = links.map((it) => ({ name: (it.textContent ?? '').trim(), what: 'view', to: it.pathname }));
  return named.filter((it) => it.name.toLowerCase().includes(low));
}

/** Repositories whose name or folder has what is typed. @param {string} text @returns {Way[]} */
function repositories(text) {
  const low = text.toLowerCase();
  return others.filter((it) => it.name.toLowerCase().includes(low));
}

/** Learns which repositories there are. */
async function learn() {
  try {
    const answer = await fetch('/rows/repositories');
    const said = await answer.json();
    const rows = said.blocks.flatMap((/** @type {any} */ it) => it.rows ?? []);
    // A list is there in each; a task and an approval are not.
    const view = /^\/[at]\//.test(path) || !base ? '/' : path;
    others = rows.map((/** @type {any} */ row) => ({
      what: row.cells[0].word, name: `${row.cells[1].text} ${row.cells[3].text}`, to: row.to.slice(0, -1) + view,
    }));
    typed();
  } catch {
    // The mark at the top says that the page does not answer.
  }
}

/** Whether words can be looked for. */
const searches = () => !switching;

/** Whether they are looked for in all repositories; then each row says in its second cell which one is its. */
const inAll = overAll && base === '';

/** The whole search, as a view. @param {string} text @returns {Way[]} */
function everywhere(text) {
  if (!text || !searches()) return [];
  return [{ name: `Search for ${text}`, what: 'search', to: `${base}/search?q=${encodeURIComponent(text)}` }];
}

/** What needs no question. @param {string} text @returns {Way[]} */
function known(text) {
  return [...(switching ? [] : views(text)), ...repositories(text), ...everywhere(text)];
}

/** @param {Way[]} found */
function draw(found) {
  ways = found;
  at = Math.min(at, Math.max(ways.length - 1, 0));
  const items = ways.map((way, n) => {
    const item = make('li', { id: `way-${n}`, role: 'option', 'aria-selected': String(n === at) },
      make('span', { class: 'what' }, way.what), make('span', {}, way.name));
    item.onclick = () => location.assign(way.to);
    return item;
  });
  byId('palette-ways').replaceChildren(...items);
  field().setAttribute('aria-expanded', String(ways.length > 0));
  if (ways.length) field().setAttribute('aria-activedescendant', `way-${at}`);
  else field().removeAttribute('aria-activedescendant');
}

/** @param {string} text */
async function ask(text) {
  const mine = ++asked;
  try {
    // What one has not typed to its end is the beginning of a word.
    const words = /[\p{L}\p{N}]{3,}$/u.test(text) && !text.includes('"') ? `${text}*` : text;
    const answer = await fetch(`${base}/rows/search?q=${encodeURIComponent(words)}`);
    const said = await answer.json();
    if (mine !== asked || !answer.ok) return;
    const rows = said.blocks.flatMap((/** @type {any} */ it) => it.rows ?? []).filter((/** @type {any} */ it) => it.to);
    const found = rows.slice(0, SHOWN).map((/** @type {any} */ row) => {
      const [what, ...cells] = row.cells;
      const where = inAll ? `${cells.shift().text}: ` : '';
      return { what: what.word, name: `${where}${cells[0].text}: ${cells[2].text}`, to: row.to };
    });
    draw([...known(text), ...found]);
    say(`${found.length} found`);
  } catch {
    // The mark at the top says that the daemon does not answer; views are there nevertheless.
  }
}

function typed() {
  const text = field().value.trim();
  at = 0;
  draw(known(text));
  clearTimeout(timer);
  asked += 1;
  if (text && searches()) timer = setTimeout(() => ask(text), PAUSE);
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by && ways.length) {
    at = (at + by + ways.length) % ways.length;
    draw(ways);
    byId(`way-${at}`).scrollIntoView({ block: 'nearest' });
  } else if (event.key === 'Enter' && ways[at]) {
    location.assign(ways[at].to);
  } else {
    return;
  }
  event.preventDefault();
}

/** Opens the field to another repository. */
export function switchTo() {
  open(true);
}

/** Opens the field. */
export function open(only = false) {
  if (dialog().open) return;
  switching = only;
  if (overAll) learn();
  field().value = '';
  typed();
  dialog().showModal();
  field().focus();
}

/** Listens for the key and the button that open it. */
export function listen() {
  byId('find').onclick = () => open();
  byId('palette-close').onclick = () => dialog().close();
  field().oninput = typed;
  field().onkeydown = pressed;
  document.addEventListener('keydown', (event) => {
    if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey) return;
    event.preventDefault();
    open();
  });
}
