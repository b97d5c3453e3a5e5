// @ts-check
// Headings between the rows of a list that is a tree: of each folder and each file, over all that is in it. They open and close.

import { make } from './dom.js';

/** What a row is in, the outermost first. @param {any} row @returns {string[]} */
const under = (row) => row.cells.find((/** @type {any} */ it) => it.is === 'place')?.under ?? [];

/** The headings of one list. */
export class Tree {
  /** @param {HTMLElement} body */
  constructor(body) {
    this.body = body;
    /** Those that their reader has closed. @type {Set<string>} */
    this.closed = new Set();
    /** @type {Map<string, HTMLElement>} */
    this.heads = new Map();
    /** The heading that has the focus while rows are drawn. @type {string | null} */
    this.at = null;
    /** @type {any[]} */
    this.rows = [];
  }

  /** Takes the headings out, so that the rows stand beside each other. */
  clear() {
    const active = document.activeElement?.closest('tr[data-group]');
    this.at = active instanceof HTMLElement && this.body.contains(active) ? active.dataset.group ?? null : null;
    for (const it of this.heads.values()) it.remove();
  }

  /**
   * Puts the headings in.
   * @param {any[]} rows those that are drawn, in their order
   * @param {number} columns
   */
  draw(rows, columns) {
    /** @type {string[]} */
    let before = [];
    const used = new Set();
    const of = new Map([...this.body.children].map((it) => [/** @type {HTMLElement} */ (it).dataset.key ?? '', it]));
    for (const row of rows) {
      const now = under(row);
      const node = of.get(row.key);
      if (!(node instanceof HTMLElement)) continue;
      const differs = now.findIndex((it, n) => it !== before[n]);
      const paths = now.map((_, n) => JSON.stringify(now.slice(0, n + 1)));
      for (let n = differs < 0 ? now.length : differs; n < now.length; n += 1) {
        const head = this.heads.get(paths[n]) ?? this.head(paths[n], now[n], n, columns);
        head.hidden = paths.slice(0, n).some((it) => this.closed.has(it));
        used.add(paths[n]);
        this.body.insertBefore(head, node);
      }
      node.hidden = paths.some((it) => this.closed.has(it));
      node.classList.toggle('in-tree', now.length > 0);
      before = now;
    }
    for (const key of [...this.heads.keys()]) if (!used.has(key)) this.heads.delete(key);
    if (this.at) this.heads.get(this.at)?.querySelector('button')?.focus();
    this.rows = rows;
  }

  /**
   * @param {string} path
   * @param {string} name
   * @param {number} depth
   * @param {number} columns
   */
  head(path, name, depth, columns) {
    const button = make('button', { type: 'button', 'aria-expanded': String(!this.closed.has(path)) }, make('code', {}, name));
    const made = make('tr', { class: `group depth-${depth}`, 'data-group': path },
      make('th', { colspan: String(columns), scope: 'colgroup' }, button));
    button.onclick = () => {
      if (!this.closed.delete(path)) this.closed.add(path);
      button.setAttribute('aria-expanded', String(!this.closed.has(path)));
      this.clear();
      this.draw(this.rows, columns);
    };
    this.heads.set(path, made);
    return made;
  }
}
