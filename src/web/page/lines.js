// @ts-check
// Links to lines of a log: `#L120` or `#L120-L140`. Who opens one stands at that line, and stays there while the log grows.

import { make, say } from './dom.js';

/** The lines that an address means, the first and the last. @param {string} hash @returns {[number, number] | null} */
export function meant(hash) {
  const found = /^#L(\d{1,9})(?:-L(\d{1,9}))?$/.exec(hash);
  if (!found) return null;
  const from = Number(found[1]);
  const to = Number(found[2] ?? found[1]);
  return from < 1 || to < 1 ? null : [Math.min(from, to), Math.max(from, to)];
}

/** The lines of one log, by their numbers. */
export class Lines {
  /**
   * @param {HTMLElement} pre
   * @param {() => void} stay called when a line is led to, so that the end is not followed
   * @param {string} name of the log, for the field's id
   */
  constructor(pre, stay, name) {
    this.pre = pre;
    this.stay = stay;
    /** The last number that was given; none is given behind a part that is not kept. */
    this.last = 0;
    this.known = true;
    /** @type {[number, number] | null} */
    this.wanted = meant(location.hash);
    /** The lines that are marked. @type {[number, number] | null} */
    this.marks = null;
    /** Whether a line is stood at: until its reader moves, no scrolling means that the end is followed. */
    this.stands = false;
    for (const it of ['wheel', 'touchmove', 'keydown', 'pointerdown']) {
      pre.addEventListener(it, () => { this.stands = false; }, { passive: true });
    }
    pre.addEventListener('click', (event) => this.click(event));
    addEventListener('hashchange', () => {
      this.wanted = meant(location.hash);
      this.arrive(true);
    });
    this.field = /** @type {HTMLInputElement} */ (
      make('input', { id: `line-${name}`, type: 'number', min: '1', inputmode: 'numeric', autocomplete: 'off' })
    );
    this.field.onkeydown = (event) => {
      if (event.key !== 'Enter') return;
      event.preventDefault();
      const line = Math.trunc(Number(this.field.value));
      if (line >= 1) this.link(line, line);
    };
    this.says = make('span', { class: 'quiet', role: 'status' });
    this.element = make('p', { class: 'find' }, make('label', { for: this.field.id }, 'Go to line'), this.field, this.says);
  }

  /** The number of the next line, or 0 where it is not known. */
  next() {
    if (!this.known) return 0;
    this.last += 1;
    return this.last;
  }

  /** Gives a line its number, as an element. @param {HTMLElement} line @param {number} number */
  put(line, number) {
    if (!number) return;
    line.dataset.n = String(number);
    if (this.marks && number >= this.marks[0] && number <= this.marks[1]) line.classList.add('linked');
  }

  /** The address of lines. @param {number} from @param {number} to */
  link(from, to) {
    history.replaceState(history.state, '', from === to ? `#L${from}` : `#L${from}-L${to}`);
    this.wanted = [from, to];
    this.arrive(true);
  }

  /** A press on a number; with the shift key, from the line that is meant to this one. @param {MouseEvent} event */
  click(event) {
    const line = event.target instanceof Element ? event.target.closest('.line[data-n]') : null;
    if (!(line instanceof HTMLElement)) return;
    const number = Number(line.dataset.n);
    const gutter = parseFloat(getComputedStyle(line, '::before').width) || 0;
    if (event.clientX - line.getBoundingClientRect().left > gutter) return;
    const [from] = event.shiftKey && this.marks ? this.marks : [number];
    this.link(Math.min(from, number), Math.max(from, number));
  }

  /**
   * Stands at the line that is meant, where it is there.
   * @param {boolean} tells whether it is said that it is not there
   */
  arrive(tells) {
    if (!this.wanted) return;
    const [from, to] = this.wanted;
    const line = this.pre.querySelector(`.line[data-n="${from}"]`);
    if (!line) {
      if (tells) this.says.textContent = from > this.last && this.known ? `Line ${from} has not come yet.` : `Line ${from} is not kept here.`;
      return;
    }
    this.wanted = null;
    this.marks = [from, to];
    for (const it of this.pre.querySelectorAll('.linked')) it.classList.remove('linked');
    for (let n = from; n <= Math.min(to, this.last); n += 1) this.pre.querySelector(`.line[data-n="${n}"]`)?.classList.add('linked');
    this.stay();
    this.stands = true;
    line.scrollIntoView({ block: 'center' });
    const text = from === to ? `Line ${from}.` : `Lines ${from} to ${to}.`;
    this.says.textContent = text;
    say(text);
  }
}
