// @ts-check
// One view of the page: asks for its blocks, draws them, and asks again when something has changed.

import { byId, say } from './dom.js';
import { moment, setClock } from './time.js';
import { base, numberOf, overAll, path, repository } from './place.js';
import { Pace } from './pace.js';
import { Live } from './live.js';
import { AGAIN, unfold } from './answer.js';
import { Blocks, commandNode, state as stateNode } from './blocks.js';
import { arranged, boardSwitch } from './board.js';
import { goBack, keepPlace } from './back.js';
import { sayGone } from './gone.js';
import { Hold } from './hold.js';
import { badge, install } from './install.js';
import { keepFilters } from './kept.js';
import { listen } from './keys.js';
import { listen as listenForSearch, open as search, switchTo } from './palette.js';
import { redeem, show as showReader, signInNode, who } from './session.js';

/** Changes that come within this time are asked for together, in milliseconds: those of one commit come at once. */
const TOGETHER = 5;

/** When to ask again where the words of an event cannot be searched yet, in milliseconds. */
const INDEXED_AFTER = 300;

/** How long an answer may take before a bar says that it is waited for, in milliseconds. */
const SLOW = 200;

/** How long to wait where the daemon does not say who reads, in milliseconds. */
const AGAIN_AFTER = 1000;

const view = document.body.dataset.view ?? '';
const blocks = new Blocks(byId('blocks'));
const title = document.title;
const pace = new Pace();
let timer = 0;
let asking = false;
/** The number of the event that the shown rows have to include; `Infinity` asks in any case, 0 for nothing. */
let wanted = 0;

/** What a view about one thing is about, by its address. */
function about() {
  const text = path.slice(3);
  try {
    return decodeURIComponent(text);
  } catch {
    // What is no text in codes is the name of nothing.
    return text;
  }
}

/** The path of the view's blocks, by the address of the document. */
function source() {
  const query = new URLSearchParams();
  const here = new URLSearchParams(location.search);
  for (const name of ['q', 'before', 'after', 'kinds', 'agent', 'resource', 'at', 'file', 'one', 'other']) {
    const value = here.get(name);
    if (value) query.set(name, value);
  }
  if (view === 'approval' || view === 'task' || view === 'event') query.set('id', about());
  return `${base}/rows/${view}?${query}`;
}

/** Whether a change may be one of this view. @param {import('./live.js').Change} change */
function concerns(change) {
  if (repository && change.repository !== repository) return false;
  // What was found in all repositories would be looked for in each of them again.
  if (overAll && !repository && view === 'search') return false;
  // What has happened stays as it is; and what two have changed is looked for in their work trees, and no event tells of those.
  if (view === 'event' || view === 'both') return false;
  const id = view === 'approval' || view === 'task' ? about() : '';
  if (view === 'approval') return change.approval === null ? change.task !== null : String(change.approval) === id;
  if (view === 'task') return change.task === null || change.task === id;
  return true;
}

/** Asks for the blocks again: at once, unless they were asked for often lately. What has them up to this event is enough. */
function again(upTo = Infinity, after = TOGETHER) {
  wanted = Math.max(wanted, upTo);
  if (document.hidden || timer || asking) return;
  timer = setTimeout(() => {
    timer = 0;
    ask();
  }, Math.max(after, pace.wait(Date.now())));
}

async function ask() {
  if (asking) return;
  asking = true;
  const meant = wanted;
  let after = TOGETHER;
  wanted = 0;
  pace.take(Date.now());
  const slow = setTimeout(() => { document.body.dataset.asks = ''; }, SLOW);
  try {
    const answer = await fetch(source()).catch(() => null);
    const said = await answer?.json().catch(() => null);
    // What goes wrong while it is drawn is another fault, and says so.
    if (!answer || !said) throw new Error('The daemon does not answer.');
    if (answer.status === 401) return signedOut();
    // It was shown before its daemon's last start.
    if (said.error === 'own_page_only') blocks.draw([]);
    if (!answer.ok) throw new Error([said.message ?? said.error, said.hint].filter(Boolean).join('; try: '));
    // The address has the beginning of a name, which leads to one thing.
    if (said.moved) return location.replace(base + said.moved);
    draw(await unfold(said));
    byId('fault').hidden = true;
    // What changed while it was on its way may be in it, and what it was asked for may not be.
    if (meant !== Infinity && meant > said.seq) [wanted, after] = [Math.max(wanted, meant), INDEXED_AFTER];
    if (wanted <= said.seq) wanted = 0;
  } catch (err) {
    fault(String(err instanceof Error ? err.message : err));
  }
  clearTimeout(slow);
  delete document.body.dataset.asks;
  asking = false;
  byId('blocks').setAttribute('aria-busy', 'false');
  if (wanted) again(wanted, after);
}

/** @param {string} text */
function fault(text) {
  const box = byId('fault');
  // Without a connection the mark at the top says so, and what was shown stays.
  box.hidden = document.body.dataset.live !== 'live' && blocks.shown.length > 0;
  const line = box.querySelector('p');
  if (line) line.textContent = text;
  // What is not there is not loading.
  if (!box.hidden && blocks.shown.length === 0) byId('blocks').replaceChildren();
}

/** Copies what went wrong, where and when; where the browser does not let a page copy, it is selected. */
async function copyFault() {
  const line = byId('fault').querySelector('p');
  const text = [line?.textContent ?? '', location.href, new Date().toISOString(), `page ${document.body.dataset.version}`].join('\n');
  try {
    await navigator.clipboard.writeText(text);
    say('Copied.');
  } catch {
    if (line) getSelection()?.selectAllChildren(line);
    say('The browser does not let this page copy; what went wrong is selected.');
  }
}

/** @param {any} said */
function draw(said) {
  const differs = setClock(said.now);
  byId('title').textContent = said.title;
  byId('repository').textContent = said.repository[0];
  byId('repository').title = said.repository[1];
  byId('state').replaceChildren(...(said.state ? [stateNode(said.state)] : []));
  byId('until').replaceChildren(...(said.until ? [moment(said.until, true)] : []));
  badge(said.needs);
  document.title = `${said.needs ? `(${said.needs}) ` : ''}${said.title} · ${said.repository[0]}`;
  const shown = [...said.blocks];
  const linked = warning(said.blocks);
  if (linked) shown.unshift(linked);
  if (differs) {
    const text = `The daemon’s clock differs from this one by ${differs} s; times go by the daemon’s.`;
    shown.unshift({ block: 'notice', tone: 'waiting', text });
  }
  if (view === 'needs-you') sayGone(said.blocks);
  blocks.draw(arranged(view, shown));
  goBack();
  const next = byId('next');
  next.hidden = !said.next;
  next.querySelector('a')?.setAttribute('href', said.next ?? '');
  news();
  act();
}

/** A link may have the beginning of a digest: what waits now may be something else. @param {any[]} found */
function warning(found) {
  const meant = new URLSearchParams(location.search).get('d');
  if (view !== 'approval' || !meant) return null;
  const facts = found.find((it) => it.block === 'facts')?.facts ?? [];
  const digest = facts.find((/** @type {any} */ it) => it.name === 'digest')?.value.text ?? '';
  if (!digest || digest.replace(/^.*:/, '').startsWith(meant) || digest.startsWith(meant)) return null;
  const text = 'The link was made for another request: what waits under this number now is not what the link was about.';
  return { block: 'notice', tone: 'bad', text };
}

/** Says how many rows are held back. */
function news() {
  const count = blocks.held;
  byId('news').hidden = count === 0;
  byId('more-rows').textContent = `${count} new, press n`;
  if (count) say(`${count} new rows`);
}

function release() {
  blocks.release();
  news();
}

const WORDS = { connecting: 'connecting', live: 'live', reconnecting: 'reconnecting', stale: 'stale' };

/**
 * How old what is shown is: of one repository on the page over all, as its daemon stands there.
 * @param {import('./live.js').Where} where
 * @returns {{ state: string, text: string }}
 */
function standing(where) {
  const at = (/** @type {number | string} */ moment) => new Date(moment).toLocaleTimeString();
  const what = overAll ? 'the page over all repositories' : 'the daemon';
  if (where.state === 'stale') return { state: 'stale', text: `stale since ${at(where.since)}: ${what} does not answer` };
  if (where.state === 'live' && where.asOf) return { state: 'stale', text: `as of ${at(where.asOf)}: the database does not answer the daemon` };
  if (where.state !== 'live' || !overAll) return { state: where.state, text: WORDS[where.state] };
  const all = Object.values(where.repositories);
  if (!repository) {
    const live = all.filter((it) => it.state === 'live').length;
    return { state: 'live', text: all.length === live ? 'live' : `live: ${live} of ${all.length}` };
  }
  const own = where.repositories[repository];
  if (!own) return { state: 'stale', text: 'no daemon of this repository has run' };
  if (own.state === 'live' && own.as_of) return { state: 'stale', text: `as of ${at(own.as_of)}: the database does not answer the daemon` };
  if (own.state === 'its own page') return { state: 'stale', text: 'read at its own page' };
  if (own.state === 'stopped') return { state: 'stale', text: `stopped since ${at(own.since)}: no daemon runs` };
  if (own.state === 'stale') return { state: 'stale', text: `stale since ${at(own.since)}: the daemon does not answer` };
  return { state: own.state, text: own.state };
}

/** @param {import('./live.js').Where} where */
function where(where) {
  const mark = byId('live');
  const { state, text } = standing(where);
  if (mark.textContent !== text) mark.textContent = text;
  mark.dataset.live = state;
  document.body.dataset.live = state;
  act();
  const own = document.body.dataset.version ?? '';
  // Another version of the page is there: its script may not fit what the daemon says.
  if (where.state === 'live' && where.page && where.page !== own && sessionStorage.getItem('provost-version') !== where.page) {
    sessionStorage.setItem('provost-version', where.page);
    location.reload();
  }
}

/** Actions are off while what is shown is old. */
function act() {
  const off = document.body.dataset.live === 'stale';
  for (const it of document.querySelectorAll('button[data-action]')) /** @type {HTMLButtonElement} */ (it).disabled = off;
}

const SCHEMES = ['', 'dark', 'light'];

function scheme() {
  const chosen = localStorage.getItem('provost-scheme') ?? '';
  if (chosen) document.documentElement.dataset.scheme = chosen;
  else delete document.documentElement.dataset.scheme;
  byId('scheme').textContent = chosen === 'dark' ? 'Dark' : chosen === 'light' ? 'Light' : 'Light or dark';
}

function filter() {
  const form = document.getElementById('filter');
  const field = /** @type {HTMLInputElement | null} */ (document.getElementById('query'));
  if (!form || !field) return;
  field.value = new URLSearchParams(location.search).get('q') ?? '';
  form.onsubmit = (event) => event.preventDefault();
  if (view === 'tasks') form.append(boardSwitch(() => again()));
  if (view === 'events') form.append(hold.button);
  if (view !== 'search') keepFilters(view, form, field);
  field.oninput = () => {
    const query = new URLSearchParams(location.search);
    if (field.value) query.set('q', field.value);
    else query.delete('q');
    // A new filter begins at its first page.
    for (const place of ['before', 'after']) query.delete(place);
    const text = query.toString();
    // The address is the view: it can be shared, and comes back.
    history.replaceState(null, '', location.pathname + (text ? `?${text}` : ''));
    again();
  };
}

/** What was shown goes, and the page begins again: with its form for signing in. */
function signedOut() {
  byId('blocks').replaceChildren();
  location.reload();
}

/** The daemon refuses the stream. */
async function refused() {
  try {
    const me = await who();
    if (me.signs_in && me.reader === null) signedOut();
  } catch { /* It does not answer, which the mark at the top says. */ }
}

/** Shows the view to those who may read it, and to others how they sign in. */
async function begin() {
  let wrong = '';
  try {
    await redeem();
  } catch (err) {
    wrong = err instanceof Error ? err.message : String(err);
  }
  try {
    const me = await who();
    showReader(me);
    if (!me.signs_in || me.reader !== null) {
      // Before the first rows, so that no change falls between the two.
      live.start();
      if (wrong) say(wrong);
      return void ask();
    }
    byId('blocks').replaceChildren(...signInNode(me, commandNode));
    byId('live').textContent = 'not signed in';
    if (wrong) fault(wrong);
  } catch (err) {
    fault(err instanceof TypeError ? 'The daemon does not answer.' : String(err instanceof Error ? err.message : err));
    setTimeout(begin, AGAIN_AFTER);
  }
  byId('blocks').setAttribute('aria-busy', 'false');
}

const hold = new Hold(() => again());
const live = new Live({
  where,
  change: (change, last) => { if (concerns(change) && !hold.counts()) again(numberOf(last)); },
  all: (of) => { if ((!repository || !of || of === repository) && !hold.counts()) again(); },
  refused,
});
byId('title').textContent = title.replace(/ · Provost$/, '');
byId('retry').onclick = () => ask();
byId('copy-fault').onclick = copyFault;
byId('more-rows').onclick = release;
byId('all-views').onclick = () => {
  const open = byId('views').classList.toggle('open');
  byId('all-views').setAttribute('aria-expanded', String(open));
  if (open) {
    byId('views').scrollIntoView({ block: 'start' });
    byId('views').querySelector('a')?.focus();
  }
};
byId('scheme').onclick = () => {
  const at = SCHEMES.indexOf(localStorage.getItem('provost-scheme') ?? '');
  localStorage.setItem('provost-scheme', SCHEMES[(at + 1) % SCHEMES.length]);
  scheme();
};
document.addEventListener(AGAIN, () => again());
document.addEventListener('visibilitychange', () => { if (!document.hidden && wanted) again(wanted); });
scheme();
filter();
keepPlace();
const holds = view === 'events' ? { hold: () => hold.turn() } : {};
listen({ news: release, search, ...holds, ...(overAll ? { switchTo } : {}) });
listenForSearch();
// On a phone the views are in one line, and the one that is shown may be beyond its end.
document.querySelector('nav.views [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
begin();
// A worker is of one page, and the page over all repositories is none that a browser keeps.
if (!overAll) install();
