// @ts-check
// Which events are shown: it stands in the address, so that a link shows the same, and a file of them can be saved.

import { make, say } from './dom.js';
import { base } from './place.js';

const NAMES = ['kinds', 'agent', 'resource', 'after', 'at'];

/** A moment of the address as it is typed, in the reader's own zone. @param {string} at */
function local(at) {
  const date = new Date(at);
  if (!at || Number.isNaN(date.getTime())) return '';
  return new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, 16).replace('T', ' ');
}

/** How long a file is kept for the browser that saves it, in milliseconds. */
const KEPT = 60_000;

/** Saves the chosen events, part by part: a file has an end, and the next one goes on before it. */
function saveNode() {
  const first = `${base}/rows/export${location.search}`;
  const save = /** @type {HTMLAnchorElement} */ (
    make('a', { href: first, download: 'events.jsonl', class: 'button', 'data-does': 'save-events' }, 'Save these as JSONL')
  );
  const name = (/** @type {string} */ text) => { save.textContent = text; };
  let busy = false;
  const part = async () => {
    const answer = await fetch(save.href);
    if (!answer.ok) throw new Error((await answer.json()).message);
    const text = await answer.text();
    const lines = text.split('\n').filter(Boolean).map((it) => JSON.parse(it));
    const more = lines[0]?.more;
    const events = more ? lines.slice(1) : lines;
    if (events.length === 0) return say('There is no event to save.');
    const [from, to] = [events[0].seq, events[events.length - 1].seq];
    const file = URL.createObjectURL(new Blob([text], { type: 'application/x-ndjson' }));
    make('a', { href: file, download: `events-${from}-to-${to}.jsonl` }).click();
    setTimeout(() => URL.revokeObjectURL(file), KEPT);
    say(`The browser saves ${events.length} events, number ${from} to ${to}.`);
    if (!more) {
      save.href = first;
      return name(`Saved to number ${from}, the first; begin again`);
    }
    const query = new URLSearchParams(location.search);
    query.set('before', String(more.before));
    save.href = `${base}/rows/export?${query}`;
    name(`Saved from number ${from} on; save those before`);
  };
  save.onclick = (event) => {
    event.preventDefault();
    if (busy) return;
    busy = true;
    part().catch((err) => name(`Not saved: ${err instanceof Error ? err.message : err}`)).finally(() => { busy = false; });
  };
  return save;
}

/** @param {any} block */
export function eventFilterNode(block) {
  const here = new URLSearchParams(location.search);
  const field = (/** @type {string} */ name, /** @type {Record<string, string>} */ attributes) => {
    const made = /** @type {HTMLInputElement} */ (make('input', { id: `event-${name}`, autocomplete: 'off', spellcheck: 'false', ...attributes }));
    made.value = name === 'at' ? local(here.get('at') ?? '') : here.get(name) ?? '';
    return made;
  };
  /** @type {Record<string, HTMLInputElement>} */
  const fields = {
    kinds: field('kinds', { list: 'kinds-there-are' }),
    agent: field('agent', {}),
    resource: field('resource', {}),
    after: field('after', { inputmode: 'numeric' }),
    at: field('at', { placeholder: '2026-11-27 14:02' }),
  };
  const texts = {
    kinds: 'Kinds, with commas between', agent: 'Caused by', resource: 'About: a file, symbol or task', after: 'After number', at: 'Up to this time',
  };
  const line = make('p', { class: 'notice bad', role: 'status', hidden: '' });
  const wrong = (/** @type {string} */ text, /** @type {HTMLElement} */ field) => {
    line.hidden = false;
    line.textContent = text;
    field.focus();
  };
  const show = () => {
    const at = fields.at.value.trim().replace(/^(\S+) +/, '$1T');
    if (at && Number.isNaN(Date.parse(at))) return wrong('A time is typed as 2026-11-27 14:02.', fields.at);
    const named = fields.kinds.value.split(',').map((it) => it.trim()).filter(Boolean);
    const none = named.find((it) => !block.kinds.includes(it));
    if (none) return wrong(`No event is of the kind ${none}.`, fields.kinds);
    const query = new URLSearchParams(location.search);
    // A page of the choice before is none of this one.
    query.delete('before');
    for (const name of NAMES) {
      const typed = fields[name].value.trim();
      const value = name === 'at' && at ? new Date(at).toISOString() : typed;
      if (value) query.set(name, value);
      else query.delete(name);
    }
    location.assign(`${location.pathname}?${query}`);
  };
  const form = make('form', { class: 'event-filter', 'aria-label': 'Which events' });
  form.onsubmit = (event) => {
    event.preventDefault();
    show();
  };
  const kinds = make('datalist', { id: 'kinds-there-are' });
  // One that is chosen adds to those before it.
  const offer = () => {
    const before = fields.kinds.value.includes(',') ? fields.kinds.value.replace(/[^,]*$/, '') : '';
    kinds.replaceChildren(...block.kinds.map((/** @type {string} */ it) => make('option', { value: before + it })));
  };
  fields.kinds.oninput = offer;
  offer();
  const rows = NAMES.map((name) => make('p', { class: 'field' },
    make('label', { for: `event-${name}` }, texts[/** @type {keyof typeof texts} */ (name)]), fields[name]));
  const save = saveNode();
  const all = make('a', { href: location.pathname, class: 'button' }, 'Show all');
  form.append(...rows, kinds, make('p', { class: 'answers' }, make('button', { type: 'submit' }, 'Show'), save, all), line);
  const open = NAMES.some((name) => here.has(name));
  const details = make('details', open ? { open: '' } : {}, make('summary', {}, 'Which events'), form);
  return make('section', { class: 'block delegate' }, details);
}
