// @ts-check
// Finds text in a worker's log, in what is not shown any more as well, and saves the whole log.

import { make, say } from './dom.js';
import { base } from './place.js';

/** How long after its press a saved file may still be read, in milliseconds. */
const KEPT = 60_000;

/**
 * All that is kept of what a task's worker has written, part by part.
 * @param {string} task
 */
async function* parts(task) {
  for (let from = 0; ;) {
    const answer = await fetch(`${base}/rows/output?id=${encodeURIComponent(task)}&from=${from}&wait_ms=0`);
    if (!answer.ok) throw new Error('The daemon does not answer.');
    const { chunks, next, done } = await answer.json();
    for (const it of chunks) yield /** @type {string} */ (it.text);
    if (done || next === from) return;
    from = next;
  }
}

/** How many lines of the whole log have a text. @param {string} task @param {string} low */
async function count(task, low) {
  let [found, rest] = [0, ''];
  for await (const text of parts(task)) {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.toLowerCase().includes(low)) found += 1;
  }
  return found + (rest.toLowerCase().includes(low) ? 1 : 0);
}

/**
 * The field that finds text in the lines of `pre`, and the button that saves the log.
 * @param {string} task
 * @param {HTMLElement} pre
 * @param {() => void} stay called before a line is led to, so that the end is not followed any more
 */
export function findNode(task, pre, stay) {
  const name = `find-${task}`;
  const field = /** @type {HTMLInputElement} */ (make('input', { id: name, type: 'search', autocomplete: 'off', spellcheck: 'false', maxlength: '200' }));
  const line = make('span', { class: 'quiet', role: 'status' });
  /** @type {Element | null} */
  let at = null;
  let counted = '';
  const mark = (/** @type {Element | null} */ next) => {
    at?.classList.remove('found');
    at = next;
    at?.classList.add('found');
    at?.scrollIntoView({ block: 'center' });
  };
  const find = async (/** @type {1 | -1} */ by) => {
    const low = field.value.toLowerCase();
    if (!low) return mark(null);
    const lines = [...pre.querySelectorAll('.line')];
    const hits = lines.filter((it) => it.textContent?.toLowerCase().includes(low));
    stay();
    const now = at ? lines.indexOf(at) : (by > 0 ? -1 : lines.length);
    const next = by > 0 ? hits.find((it) => lines.indexOf(it) > now) ?? hits[0] : hits.findLast((it) => lines.indexOf(it) < now) ?? hits.at(-1);
    mark(next ?? null);
    const place = next ? `${hits.indexOf(next) + 1} of ${hits.length} lines here` : 'No line here has it';
    line.textContent = place;
    if (counted === low) return;
    counted = low;
    try {
      const all = await count(task, low);
      if (field.value.toLowerCase() === low) line.textContent = `${place}; ${all} in all that is kept`;
    } catch { /* The mark at the top says that the daemon does not answer. */ }
  };
  field.oninput = () => mark(null);
  field.onkeydown = (event) => {
    if (event.key !== 'Enter') return;
    event.preventDefault();
    find(event.shiftKey ? -1 : 1);
  };
  const button = (/** @type {string} */ text, /** @type {() => void} */ work) => {
    const made = make('button', { type: 'button' }, text);
    made.onclick = work;
    return made;
  };
  const save = button('Save the log', async () => {
    try {
      const all = [];
      for await (const text of parts(task)) all.push(text);
      const file = URL.createObjectURL(new Blob(all, { type: 'text/plain' }));
      make('a', { href: file, download: `${task}.log` }).click();
      setTimeout(() => URL.revokeObjectURL(file), KEPT);
      say('The browser saves the log.');
    } catch (err) {
      line.textContent = err instanceof Error ? err.message : String(err);
    }
  });
  save.dataset.does = 'save-log';
  return make('p', { class: 'find' }, make('label', { for: name }, 'Find in the log'), field,
    button('Next', () => find(1)), button('Previous', () => find(-1)), save, line);
}
