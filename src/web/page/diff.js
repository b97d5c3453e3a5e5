// @ts-check
// A difference, file by file: its lines are made when a file is opened, with the colours that the daemon names by their places.
// What is read is the text of the lines alone.

import { make } from './dom.js';
import { store, stored, viewedNode } from './viewed.js';

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

/** Puts nodes into a place, part by part. @param {HTMLElement} pre @param {HTMLElement[]} nodes */
function inParts(pre, nodes) {
  for (let from = 0; from < nodes.length; from += PART) {
    const part = nodes.slice(from, from + PART);
    // Only a full part of a long file has the height that is taken for it while it is not seen.
    const is_full = part.length === PART && nodes.length > PART;
    pre.append(make('span', { class: is_full ? 'part full' : 'part' }, ...part));
  }
}

/**
 * The places of lines that stand beside each other: on the left the file as it was, on the right as it would be. Lines that go
 * stand beside those that come in their place; -1 is nothing, and a head or a place in the file goes over both sides.
 * @param {any[]} lines
 * @returns {number[][]}
 */
export function pairs(lines) {
  const run = (/** @type {number} */ from, /** @type {string} */ is) => {
    let to = from;
    while (lines[to]?.is === is) to += 1;
    return to - from;
  };
  const rows = [];
  for (let at = 0; at < lines.length;) {
    const gone = run(at, 'remove');
    const come = run(at + gone, 'add');
    for (let n = 0; n < Math.max(gone, come); n += 1) {
      rows.push([n < gone ? at + n : -1, n < come ? at + gone + n : -1]);
    }
    if (gone + come === 0) rows.push(lines[at].is === 'same' ? [at, at] : [at]);
    at += Math.max(gone + come, 1);
  }
  return rows;
}

/**
 * Draws the lines of a file into their place.
 * @param {HTMLElement} pre
 * @param {any} file
 * @param {boolean} beside whether the two sides stand beside each other
 */
function fill(pre, file, beside) {
  /** @type {Map<number, any>} */
  const marks = new Map((file.marks ?? []).map((/** @type {any} */ it) => [it[0], it]));
  const node = (/** @type {number} */ at) => lineNode(file.lines[at], marks.get(at));
  pre.classList.toggle('sides', beside);
  pre.replaceChildren();
  if (!beside) return inParts(pre, file.lines.map((/** @type {any} */ _, /** @type {number} */ at) => node(at)));
  const side = (/** @type {number} */ at) => (at < 0 ? make('span', { class: 'line absent' }) : node(at));
  inParts(pre, pairs(file.lines).map((row) => make('span', { class: row.length === 1 ? 'row whole' : 'row' }, ...row.map(side))));
}

const SIDES = 'provost-sides';

/** Below this width, two sides would be too narrow to be read. */
const wide = matchMedia('(min-width: 64rem)');

/** Whether the reader wants the two sides of a difference beside each other. */
const wanted = () => stored(SIDES) === 'on';

/** What draws a file again, by its element. @type {WeakMap<Element, () => void>} */
const drawn = new WeakMap();

function drawAgain() {
  for (const it of document.querySelectorAll('details.file')) drawn.get(it)?.();
  for (const it of document.querySelectorAll('button.sides')) it.setAttribute('aria-pressed', String(wanted()));
}

wide.addEventListener('change', drawAgain);

function sidesButton() {
  const button = make('button', { type: 'button', class: 'sides', 'aria-pressed': String(wanted()) }, 'Side by side');
  button.onclick = () => {
    store(SIDES, wanted() ? '' : 'on');
    drawAgain();
  };
  return button;
}

/** @param {any} file @param {() => void} [counts] told when the file is marked as viewed or not; without it no mark is offered */
function fileNode(file, counts) {
  const label = `Difference of ${file.path}`;
  const pre = make('pre', { class: 'diff', tabindex: '0', role: 'region', 'aria-label': label });
  const lines = file.lines.length + file.more;
  const is_long = file.added + file.removed > OPEN_LINES;
  const count = make('span', { class: 'count' }, `+${file.added} −${file.removed}${is_long ? `, ${lines} lines` : ''}`);
  const made = /** @type {HTMLDetailsElement} */ (
    make('details', { class: 'file' }, make('summary', {}, make('code', {}, file.path), ' ', count), pre));
  if (file.more) made.append(make('p', { class: 'quiet' }, `${file.more} more lines; provost task diff shows all.`));
  /** @type {boolean | null} */
  let beside = null;
  const draw = () => {
    const is_beside = wanted() && wide.matches;
    if (!made.open || beside === is_beside) return;
    beside = is_beside;
    fill(pre, file, is_beside);
  };
  drawn.set(made, draw);
  made.addEventListener('toggle', draw);
  made.open = !is_long;
  draw();
  const whole = make('div', { class: 'of-file' }, made);
  // Of lines that are not shown here, none can be said to have been viewed.
  if (counts && !file.more) {
    viewedNode(file, (is_viewed) => {
      made.open = !is_viewed;
      counts();
    }).then((mark) => {
      if (!mark) return;
      whole.append(mark);
      counts();
    });
  }
  return whole;
}

/** A difference: its files, and above them how they are shown. @param {any} block */
export function differenceNode(block) {
  const seen = make('span', { class: 'quiet' });
  const head = make('div', { class: 'diff-head' }, make('h2', {}, block.title), seen);
  const files = make('div');
  const made = make('section', { class: 'block' }, head, files);
  if (block.files.length === 0) return made;
  head.append(sidesButton());
  const counts = () => {
    const marks = [...files.querySelectorAll('.viewed input')];
    const viewed = marks.filter((it) => /** @type {HTMLInputElement} */ (it).checked).length;
    seen.textContent = viewed ? `${viewed} of ${block.files.length} viewed` : '';
  };
  files.append(...block.files.map((/** @type {any} */ it) => fileNode(it, block.is_change ? undefined : counts)));
  return made;
}
