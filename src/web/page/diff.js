// @ts-check
// A difference, file by file: its lines are made when a file is opened, with the colours that the daemon names by their places.
// What is read is the text of the lines alone.

import { make } from './dom.js';

/** Changed lines of a file up to which its difference is open at once. */
const OPEN_LINES = 400;

/** Lines of one part; a browser lays out the parts that are seen. */
const PART = 200;

/** @type {Record<string, string>} */
const SIGNS = { add: '+', remove: '-', same: ' ' };

/**
 * The text of a line in pieces, none of them lost and none twice.
 * @param {string} text
 * @param {number[]} colours where each begins, its length and its number, in order
 * @param {[number, number] | null} changed
 * @returns {(string | HTMLElement)[]}
 */
export function pieces(text, colours, changed) {
  const cuts = new Set([0, text.length]);
  /** @type {Map<number, [number, number]>} */
  const begins = new Map();
  for (let n = 0; n + 2 < colours.length; n += 3) {
    const from = Math.min(colours[n], text.length);
    const to = Math.min(from + colours[n + 1], text.length);
    begins.set(from, [to, colours[n + 2]]);
    cuts.add(from).add(to);
  }
  const [first, last] = changed ?? [0, 0];
  cuts.add(Math.min(first, text.length)).add(Math.min(last, text.length));
  const places = [...cuts].sort((a, b) => a - b);
  let [end, colour] = [0, 0];
  return places.slice(0, -1).map((from, n) => {
    const part = text.slice(from, places[n + 1]);
    [end, colour] = begins.get(from) ?? [end, colour];
    const names = [];
    if (from < end) names.push(`t${Math.trunc(colour)}`);
    if (from >= first && from < last) names.push('changed');
    return names.length ? make('span', { class: names.join(' ') }, part) : part;
  });
}

/**
 * @param {any} line
 * @param {[number, number[], [number, number] | null] | undefined} marks
 */
function lineNode(line, marks) {
  const made = make('span', { class: `line ${line.is}` });
  if (line.before) made.dataset.before = line.before;
  if (line.after) made.dataset.after = line.after;
  // A head has no sign.
  made.append(SIGNS[line.is] ?? '', ...(marks ? pieces(line.text, marks[1], marks[2]) : [line.text]), '\n');
  return made;
}

/**
 * Puts the lines of a file into its place, part by part.
 * @param {HTMLElement} pre
 * @param {any} file
 */
function fill(pre, file) {
  /** @type {Map<number, any>} */
  const marks = new Map((file.marks ?? []).map((/** @type {any} */ it) => [it[0], it]));
  for (let from = 0; from < file.lines.length; from += PART) {
    const lines = file.lines.slice(from, from + PART);
    const nodes = lines.map((/** @type {any} */ it, /** @type {number} */ n) => lineNode(it, marks.get(from + n)));
    // Only a full part of a long file has the height that is taken for it while it is not seen.
    const is_full = lines.length === PART && file.lines.length > PART;
    pre.append(make('span', { class: is_full ? 'part full' : 'part' }, ...nodes));
  }
}

/** @param {any} file */
export function diffFileNode(file) {
  const label = `Difference of ${file.path}`;
  const pre = make('pre', { class: 'diff', tabindex: '0', role: 'region', 'aria-label': label });
  const lines = file.lines.length + file.more;
  const is_long = file.added + file.removed > OPEN_LINES;
  const count = make('span', { class: 'count' }, `+${file.added} −${file.removed}${is_long ? `, ${lines} lines` : ''}`);
  const made = make('details', { class: 'file' }, make('summary', {}, make('code', {}, file.path), ' ', count), pre);
  if (file.more) made.append(make('p', { class: 'quiet' }, `${file.more} more lines; provost task diff shows all.`));
  if (is_long) made.addEventListener('toggle', () => fill(pre, file), { once: true });
  else {
    fill(pre, file);
    made.setAttribute('open', '');
  }
  return made;
}
