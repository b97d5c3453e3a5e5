// @ts-check
// One field that leads everywhere: to a view, to another repository, and to tasks, messages and events by the words in them.

import { byId, make, say } from './dom.js';
import { base, overAll, path } from './place.js';
import { store, stored } from './viewed.js';

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

/** The ways that were gone last, which stand first. */
const RECENT = 'provost-ways';
const RECENT_KEPT = 20;

/** @returns {string[]} */
function recent() {
  try {
    const read = JSON.parse(stored(RECENT) || '[]');
    return Array.isArray(read) ? read.filter((it) => typeof it === 'string') : [];
  } catch {
    return [];
  }
}

/** @param {Way} way */
function go(way) {
  store(RECENT, JSON.stringify([way.to, ...recent().filter((it) => it !== way.to)].slice(0, RECENT_KEPT)));
  location.assign(way.to);
}

/**
 * How well a name has what is typed: 0 where the letters stand together, more where they only follow each other; nothing where they do not.
 * @param {string} name @param {string} text
 */
export function fits(name, text) {
  const [low, typed] = [name.toLowerCase(), text.toLowerCase()];
  if (low.includes(typed)) return low.startsWith(typed) ? 0 : 1;
  let at = -1;
  for (const letter of typed) {
    if (letter === ' ') continue;
    at = low.indexOf(letter, at + 1);
    if (at < 0) return null;
  }
  return 2;
}

/**
 * Those ways that fit, the best first, and among those as good the one that was gone last; loosely those whose letters only follow.
 * @param {Way[]} all @param {string} text @param {boolean} loosely
 */
function best(all, text, loosely = false) {
  const gone = recent();
  const place = (/** @type {Way} */ it) => {
    const at = gone.indexOf(it.to);
    return at < 0 ? gone.length : at;
  };
  const rated = all.map((way) => ({ way, fit: fits(way.name, text) })).filter((it) => it.fit !== null && (it.fit === 2) === loosely);
  rated.sort((a, b) => Number(a.fit) - Number(b.fit) || place(a.way) - place(b.way));
  return rated.map((it) => it.way);
}

/** Views, and what is done on them, whose name has what is typed. @param {string} text @param {boolean} loosely @returns {Way[]} */
function views(text, loosely = false) {
  const links = [...document.querySelectorAll('nav.views a')].filter((it) => it instanceof HTMLAnchorElement);
  const named = links.map((it) => ({ name: (it.textContent ?? '').trim(), what: 'view', to: it.pathname }));
  const verbs = inAll ? [] : VERBS.map(([name, to]) => ({ name, what: 'to do', to: base + to }));
  // What is to be done is offered to who types: the list of views is long enough.
  return best(text ? [...named, ...verbs] : named, text, loosely);
}

/** What is done on a view that its name does not say. */
const VERBS = [
  ['Hand out work', '/tasks'], ['Cancel tasks', '/tasks'], ['Approve or deny', '/'], ['Answer a question', '/messages'],
  ['Release a lock or a claimed file', '/locks'], ['End an intent', '/intents'], ['End a wait', '/waits'], ['Undo an apply', '/audit'],
  ['Pause or resume a worker', '/health'], ['Revoke tokens of an agent', '/agents'], ['Enrol a passkey', '/passkeys'],
  ['Save events as JSONL', '/e'],
];

/** Agents of this repository, once they are known. @type {Way[]} */
let agents = [];

/** Learns which agents there are. */
async function learnAgents() {
  try {
    const answer = await fetch(`${base}/rows/agents`);
    const said = await answer.json();
    const rows = said.blocks.flatMap((/** @type {any} */ it) => it.rows ?? []);
    agents = rows.map((/** @type {any} */ row) => ({
      what: 'agent', name: row.cells[1].text, to: `${base}/agents?q=${encodeURIComponent(row.cells[1].text)}`,
    }));
    if (field().value.trim()) typed();
  } catch {
    // The mark at the top says that the daemon does not answer.
  }
}

/** Repositories whose name or folder has what is typed. @param {string} text @returns {Way[]} */
function repositories(text) {
  return best(others, text);
}

/** Learns which repositories there are. */
async function learn() {
  try {
    const answer = await fetch('/rows/repositories');
    const said = await answer.json();
    const rows = said.blocks.flatMap((/** @type {any} */ it) => it.rows ?? []);
    // A list is there in each; a task and an approval are not.
    const view = /^\/[ate]\//.test(path) || !base ? '/' : path;
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
  const named = text && !switching ? best(agents, text).slice(0, SHOWN) : [];
  return [...(switching ? [] : views(text)), ...repositories(text), ...named, ...everywhere(text)];
}

/** What has the letters of what is typed in their order, and no more: it stands behind everything else. @param {string} text @returns {Way[]} */
function loose(text) {
  if (text.length < 2) return [];
  const all = [...best(others, text, true), ...(switching ? [] : [...views(text, true), ...best(agents, text, true)])];
  return all.slice(0, SHOWN);
}

/** @param {Way[]} found */
function draw(found) {
  ways = [...found, ...loose(field().value.trim())];
  show();
}

/** Draws the ways, with a mark on the one that is chosen. */
function show() {
  at = Math.min(at, Math.max(ways.length - 1, 0));
  const items = ways.map((way, n) => {
    const item = make('li', { id: `way-${n}`, role: 'option', 'aria-selected': String(n === at) },
      make('span', { class: 'what' }, way.what), make('span', {}, way.name));
    item.onclick = () => go(way);
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
    show();
    byId(`way-${at}`).scrollIntoView({ block: 'nearest' });
  } else if (event.key === 'Enter' && ways[at]) {
    go(ways[at]);
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
  if (!inAll && !only) learnAgents();
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
