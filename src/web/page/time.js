// @ts-check
// Moments in words, which go on by themselves: by the daemon's clock, in the reader's zone.

import { make } from './dom.js';

/** How far the daemon's clock is ahead of this one, in milliseconds. */
let ahead = 0;

/** A difference of clocks that is said, in milliseconds. */
const SAID_FROM = 5000;

/**
 * Takes the daemon's time, and says by how many seconds the clocks differ where that matters.
 * @param {string} now
 * @returns {number}
 */
export function setClock(now) {
  ahead = Date.parse(now) - Date.now();
  return Math.abs(ahead) < SAID_FROM ? 0 : Math.round(ahead / 1000);
}

/** @param {number} ms */
function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 90) return `${s} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 129600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
}

/** How long something took. @param {number} ms */
function lasted(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  const two = (/** @type {number} */ it) => String(it).padStart(2, '0');
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${two(Math.floor(s / 60) % 60)} min`;
}

/** @param {HTMLElement} element */
function update(element) {
  if (element.dataset.from !== undefined) {
    const until = element.dataset.to ? Date.parse(element.dataset.to) : Date.now() + ahead;
    const text = lasted(until - Date.parse(element.dataset.from));
    if (element.textContent !== text) element.textContent = text;
    return;
  }
  const at = Date.parse(element.getAttribute('datetime') ?? '');
  const now = Date.now() + ahead;
  let text;
  if (element.dataset.until !== undefined) {
    text = at > now ? `${span(at - now)} left` : 'over';
    element.classList.toggle('soon', at - now < 60000);
  } else {
    text = at > now ? `in ${span(at - now)}` : `${span(now - at)} ago`;
  }
  if (element.textContent !== text) element.textContent = text;
}

/** A moment in the reader's zone. @param {string} at */
function inFull(at) {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? at : date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
}

/**
 * A moment; with `until`, one at which something ends.
 * @param {string} at
 * @param {boolean} until
 */
export function moment(at, until) {
  const made = make('time', { datetime: at, title: inFull(at), class: until ? 'until' : 'at' });
  if (until) made.dataset.until = '';
  update(made);
  return made;
}

/** How long something took from one moment to the other; one without an end goes on. @param {string} from @param {string | null} to */
export function took(from, to) {
  const made = make('time', { class: 'took', 'data-from': from, title: `since ${inFull(from)}${to ? `, until ${inFull(to)}` : ''}` });
  if (to) made.dataset.to = to;
  update(made);
  return made;
}

/** Bars that become shorter until their time is over. @type {Set<() => boolean>} */
const bars = new Set();

/**
 * Has a bar become shorter, from one moment until another; for as long as it is in the document.
 * @param {Element} bar
 * @param {number} most its length at the first moment
 * @param {string} from
 * @param {string} to
 */
export function shrink(bar, most, from, to) {
  let drawn = false;
  const step = () => {
    const [begin, end] = [Date.parse(from), Date.parse(to)];
    const left = Math.min(1, Math.max(0, (end - Date.now() - ahead) / Math.max(1, end - begin)));
    bar.setAttribute('width', String(Math.round(left * most)));
    drawn ||= bar.isConnected;
    return !drawn || bar.isConnected;
  };
  step();
  bars.add(step);
}

setInterval(() => {
  if (!document.hidden) for (const it of bars) if (!it()) bars.delete(it);
  if (!document.hidden) for (const it of document.querySelectorAll('time')) update(it);
}, 1000);
