// @ts-check
// What a worker writes, as it comes: colours are kept, everything else that a terminal would act upon is left out.

import { make } from './dom.js';
import { findNode } from './find.js';
import { Lines } from './lines.js';
import { base } from './place.js';

/** Lines of one chunk, and chunks that are kept; older ones are left out. */
const CHUNK = 200;
const CHUNKS_MAX = 100;

/** Characters that are kept, and those of one line: what a worker writes need not have lines. */
const KEPT = 8_000_000;
const LINE = 20_000;

/** How long the daemon may hold an answer back, in milliseconds. A browser has six connections for all tabs. */
const WAIT = 2000;

// What shows nothing, or turns the direction of a text around.
const HIDDEN = new RegExp('[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e'
  + '\\u2060-\\u206f\\ufe00-\\ufe0f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e0fff}]', 'gu');
// A sequence of a terminal: with parameters, with a text, or of one letter.
const SEQUENCE = /\u001b(?:\[([0-9;:?<=>]*)[ -/]*([@-~])|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])/g;

/** @param {string} text */
const seen = (text) => text.replace(HIDDEN, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);

/** Reads text with sequences, line by line. */
export class Ansi {
  constructor() {
    this.classes = new Set();
  }

  /** @param {string} parameters */
  colour(parameters) {
    const codes = parameters.split(/[;:]/).map(Number);
    if (codes[0] === 38 || codes[0] === 48) return;
    for (const code of codes) {
      if (code === 0) this.classes.clear();
      if (code === 1) this.classes.add('bold');
      if (code === 22) this.classes.delete('bold');
      const base = code % 10;
      if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) {
        this.plain();
        this.classes.add(`c${base}`);
      }
      if (code === 39) this.plain();
    }
  }

  plain() {
    for (const it of [...this.classes]) if (it.startsWith('c')) this.classes.delete(it);
  }

  /**
   * A line as an element.
   * @param {string} line
   */
  line(line) {
    // What a carriage return has written over is gone.
    const text = line.replace(/\r+$/, '');
    const last = text.slice(text.lastIndexOf('\r') + 1);
    const made = make('span', { class: 'line' });
    let from = 0;
    const put = (/** @type {string} */ part) => {
      if (!part) return;
      made.append(this.classes.size ? make('span', { class: [...this.classes].join(' ') }, seen(part)) : seen(part));
    };
    for (const found of last.matchAll(SEQUENCE)) {
      put(last.slice(from, found.index));
      from = found.index + found[0].length;
      if (found[2] === 'm') this.colour(found[1] || '0');
    }
    put(last.slice(from));
    made.append('\n');
    return made;
  }
}

/** The log of one task. */
export class Log {
  /**
   * @param {string} task
   * @param {boolean} live
   */
  constructor(task, live) {
    this.task = task;
    this.live = live;
    this.from = 0;
    this.ansi = new Ansi();
    this.rest = '';
    /** Lines that are not made yet, since a reader stands before them. @type {string[]} */
    this.later = [];
    /** Whether what comes next begins a line. */
    this.begins = true;
    this.kept = 0;
    this.left = 0;
    this.follows = true;
    this.fresh = 0;
    this.pre = make('pre', { class: 'log', tabindex: '0', role: 'region', 'aria-label': 'What the worker writes' });
    this.more = make('button', { type: 'button', class: 'more', hidden: '' });
    const none = live ? 'Nothing was written yet.' : 'Nothing that the worker has written is kept here.';
    this.note = make('p', { class: 'quiet' }, none);
    this.find = findNode(task, this.pre, () => { this.follows = false; });
    this.lines = new Lines(this.pre, () => { this.follows = false; }, task);
    // Who comes for a line is not led to the end first.
    this.follows = this.lines.wanted === null;
    this.element = make('section', { class: 'block' }, make('h2', {}, 'Log'), this.note, this.find, this.lines.element, this.pre, this.more);
    this.pre.hidden = true;
    this.find.hidden = true;
    this.lines.element.hidden = true;
    this.pre.onscroll = () => {
      if (this.lines.stands) return;
      const end = this.pre.scrollHeight - this.pre.scrollTop - this.pre.clientHeight < 8;
      this.follows = end;
      if (end) this.goOn();
    };
    this.more.onclick = () => this.toEnd();
    document.addEventListener('visibilitychange', () => this.read());
    this.reads = false;
    this.read();
  }

  toEnd() {
    this.follows = true;
    this.lines.stands = false;
    this.pre.scrollTop = this.pre.scrollHeight;
    this.goOn();
  }

  /** Goes on to make what comes. */
  goOn() {
    this.showFresh(0);
    if (this.later.length) this.put('');
    this.read();
  }

  /** Whether nothing is left out for what comes: a reader stands somewhere in it, and no line is looked for. */
  get holds() {
    return this.stands && (this.later.length > 0 || this.pre.childElementCount >= CHUNKS_MAX || this.kept > KEPT);
  }

  get stands() {
    return !this.follows && !this.lines.wanted;
  }

  /** How many lines are made of what has come. */
  room() {
    if (this.stands) return Math.max(0, CHUNKS_MAX - this.pre.childElementCount) * CHUNK;
    const behind = (this.lines.wanted?.[0] ?? 0) - this.lines.last + (CHUNK * CHUNKS_MAX) / 2;
    return !this.follows && behind > 0 ? behind : Infinity;
  }

  /** @param {number} count */
  showFresh(count) {
    this.fresh = count;
    this.more.hidden = count === 0;
    this.more.textContent = count === 1 ? '1 new line' : `${count} new lines`;
  }

  /** Reads until there is no more, while the tab is seen. */
  async read() {
    if (this.reads || document.hidden) return;
    this.reads = true;
    try {
      while (!this.holds) {
        const query = `id=${encodeURIComponent(this.task)}&from=${this.from}&wait_ms=${this.live ? WAIT : 0}`;
        const answer = await fetch(`${base}/rows/output?${query}`);
        if (!answer.ok) break;
        const { chunks, next, done, note } = await answer.json();
        this.from = next;
        for (const it of chunks) {
          if (it.lost) this.lose(it.lost);
          this.put(it.text);
          this.lines.arrive(false);
        }
        if (note) {
          this.note.hidden = false;
          this.note.textContent = `Nothing is heard of it: ${note}.`;
        }
        if (done && this.rest) this.put('\n');
        this.lines.arrive(done || !chunks.length);
        if (done) break;
        if (!chunks.length && (!this.live || document.hidden)) break;
      }
    } catch {
      // The daemon is away; the next event begins again.
    }
    this.reads = false;
  }

  /** @param {string} text */
  put(text) {
    const lines = this.later.concat((this.rest + text).split('\n'));
    this.rest = lines.pop() ?? '';
    // What a reader stands at, or looks for, would be left out again by what comes behind it.
    this.later = lines.splice(this.room());
    const whole = lines.length;
    // A line that does not end is broken, or it would be read again with each part of it that comes.
    for (; !this.later.length && this.rest.length > LINE; this.rest = this.rest.slice(LINE)) lines.push(this.rest.slice(0, LINE));
    if (!lines.length) return;
    this.note.hidden = true;
    this.pre.hidden = false;
    this.find.hidden = false;
    this.lines.element.hidden = false;
    // What would be left out again at once is not made.
    const from = Math.max(0, lines.length - CHUNK * CHUNKS_MAX);
    if (from) this.leave(this.pre.childElementCount);
    this.left += from;
    lines.forEach((line, n) => {
      const number = this.begins ? this.lines.next() : 0;
      // What goes on in the next part has no number of its own.
      this.begins = n < whole;
      if (n < from) return;
      for (let at = 0; at === 0 || at < line.length; at += LINE) this.add(line.slice(at, at + LINE), at ? 0 : number);
    });
    const is_full = () => this.pre.childElementCount > CHUNKS_MAX || (this.kept > KEPT && this.pre.childElementCount > 1);
    while (!this.stands && is_full()) this.leave(1);
    if (this.left) {
      this.note.hidden = false;
      this.note.textContent = `${this.left} lines before these are left out.`;
    }
    if (this.follows) this.pre.scrollTop = this.pre.scrollHeight;
    else this.showFresh(this.fresh + lines.length);
  }

  /** A part of the log is not kept: behind it no line has a number. @param {number} bytes */
  lose(bytes) {
    if (this.rest) this.put('\n');
    this.lines.known = false;
    this.put(`[${bytes} bytes are not kept here]\n`);
  }

  /** @param {string} line @param {number} number */
  add(line, number) {
    let chunk = this.pre.lastElementChild;
    if (!chunk || chunk.childElementCount >= CHUNK) {
      // Its height is known well enough from now on.
      chunk?.classList.add('full');
      chunk = make('span', { class: 'chunk' });
      this.pre.append(chunk);
    }
    const made = this.ansi.line(line);
    this.lines.put(made, number);
    chunk.append(made);
    this.kept += made.textContent?.length ?? 0;
  }

  /** Leaves out the oldest chunks. @param {number} chunks */
  leave(chunks) {
    for (let n = 0; n < chunks; n += 1) {
      const first = this.pre.firstElementChild;
      this.left += first?.childElementCount ?? 0;
      this.kept -= first?.textContent?.length ?? 0;
      first?.remove();
    }
  }
}
