// @ts-check
// Tasks as a board, a column for each state: the same rows as in the list, and what the reader chose stays so in this browser.

import { make } from './dom.js';
import { store, stored } from './viewed.js';

const NAME = 'provost-board';

/** The columns, in the order of a task's life; a state that is none of them gets a column behind. */
const COLUMNS = ['waits for approval', 'queued', 'assigned', 'running', 'completed', 'failed', 'cancelled'];

/** Whether the reader wants a board. */
export const wantsBoard = () => stored(NAME) === 'yes';

/**
 * The lists of a view as one board, where the reader wants that.
 * @param {string} view
 * @param {any[]} blocks
 */
export function arranged(view, blocks) {
  if (view !== 'tasks' || !wantsBoard()) return blocks;
  const lists = blocks.filter((it) => it.block === 'list');
  if (lists.length === 0) return blocks;
  /** @type {Map<string, any[]>} */
  const columns = new Map(COLUMNS.map((it) => [it, []]));
  for (const row of lists.flatMap((it) => it.rows)) {
    const state = row.cells[0].word.replace(/, tainted$/, '');
    columns.set(state, [...(columns.get(state) ?? []), row]);
  }
  const more = lists.reduce((sum, it) => sum + it.more, 0);
  const board = { block: 'board', title: 'Tasks by state', columns: [...columns], more, heads: lists[0].columns };
  return [...blocks.filter((it) => it.block !== 'list'), board];
}

/**
 * @param {any} block
 * @param {(cell: any) => Node} cellNode
 * @param {(row: any) => HTMLElement[]} actions
 */
export function boardNode(block, cellNode, actions) {
  const card = (/** @type {any} */ row) => {
    const made = make('article', { class: 'card', tabindex: '-1', 'data-key': row.key, 'data-to': row.to ?? '' });
    const cells = row.cells.map((/** @type {any} */ cell, /** @type {number} */ n) => {
      if (n === 0) return make('p', {}, row.to ? make('a', { href: row.to }, cellNode(cell)) : cellNode(cell));
      return make('p', {}, make('span', { class: 'quiet' }, `${block.heads[n]} `), cellNode(cell));
    });
    made.append(...cells, ...(row.commands.length ? actions(row) : []));
    return made;
  };
  const columns = block.columns.map((/** @type {[string, any[]]} */ [state, rows]) => (
    make('section', { class: 'column', 'aria-label': state },
      make('h3', {}, `${state} (${rows.length})`), ...rows.map(card),
      ...(rows.length ? [] : [make('p', { class: 'empty' }, 'None.')]))
  ));
  const more = block.more ? [make('p', { class: 'quiet' }, `${block.more} more; the filter finds them.`)] : [];
  return make('section', { class: 'block' }, make('h2', {}, block.title), make('div', { class: 'board' }, ...columns), ...more);
}

/** The button that changes between the two. @param {() => void} changed */
export function boardSwitch(changed) {
  const button = make('button', { type: 'button', 'data-does': 'board' });
  const name = () => {
    button.textContent = wantsBoard() ? 'As a list' : 'As a board';
  };
  button.onclick = () => {
    store(NAME, wantsBoard() ? 'no' : 'yes');
    name();
    changed();
  };
  name();
  return button;
}
