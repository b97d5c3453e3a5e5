// @ts-check
// Draws the blocks of a view. What stays the same stays in its place: focus and scroll survive each update.

import { make, say } from './dom.js';
import { base } from './place.js';
import { moment, shrink, took } from './time.js';
import { Tree } from './tree.js';
import { Log } from './log.js';
import { again, answerNode } from './answer.js';
import { delegateNode, hereNode } from './act.js';
import { enrolNode, vouchNode } from './enrol.js';
import { boardNode } from './board.js';
import { choiceNodes, keepShown } from './choose.js';
import { differenceNode } from './diff.js';
import { eventFilterNode } from './events.js';
import { bringBack, comeBack, isPutOff, putOff, putOffNode } from './snooze.js';
import { graphNode, svg } from './graph.js';
import { journalCheckNode } from './journal.js';
import { pushNode } from './push.js';
import { replayNode } from './replay.js';

/** Up to so many signs, the words of a text are not broken: a column is as wide as the longest one. */
const UNBROKEN_MAX = 20;

const SIGNS = { quiet: '○', moving: '▶', waiting: '◆', good: '✓', bad: '!' };

/** @param {string} text */
const unbroken = (text) => (text.length > UNBROKEN_MAX ? '' : 'unbroken');

/** @param {{ word: string, tone: keyof typeof SIGNS }} state */
export function state(state) {
  const sign = make('span', { class: 'sign', 'aria-hidden': 'true' }, SIGNS[state.tone] ?? '');
  return make('span', { class: `state ${state.tone} ${unbroken(state.word)}` }, sign, `\u00a0${state.word}`);
}

/** @param {any} cell */
function cellNode(cell) {
  switch (cell.is) {
    case 'text': return make('span', { class: unbroken(cell.text) }, cell.text);
    case 'said': return make('q', { class: 'said', title: 'In its author’s words' }, cell.text);
    case 'code': return make('code', { class: unbroken(cell.text) }, cell.text);
    case 'state': return state(cell);
    case 'time': return moment(cell.at, false);
    case 'until': return cell.from ? leftNode(cell) : moment(cell.at, true);
    case 'took': return took(cell.from, cell.to);
    case 'place': return make('code', { class: unbroken(cell.name), title: cell.text }, cell.name);
    case 'link': return make('a', { href: cell.to }, cell.text);
    case 'share': return shareNode(cell);
    default: return make('span', { class: 'none' }, '–');
  }
}

/** The length of the longest bar. */
const BAR = 80;

/** A number with a bar, which only repeats it. @param {any} cell */
function shareNode(cell) {
  const width = Math.max(1, Math.round((cell.of_thousand * BAR) / 1000));
  const bar = svg('svg', { class: 'bar', width: BAR, height: 10, 'aria-hidden': 'true' },
    svg('rect', { class: 'all', width: BAR, height: 10 }), svg('rect', { class: 'part', width, height: 10 }));
  return make('span', { class: 'share' }, bar, ` ${cell.text}`);
}

/** A moment at which something ends, with a bar of what is left of its time, which only repeats it. @param {any} cell */
function leftNode(cell) {
  const part = svg('rect', { class: 'part', width: BAR, height: 10 });
  const bar = svg('svg', { class: 'bar left', width: BAR, height: 10, 'aria-hidden': 'true' },
    svg('rect', { class: 'all', width: BAR, height: 10 }), part);
  const time = moment(cell.at, true);
  shrink(part, BAR, cell.from, cell.at);
  return make('span', { class: 'share' }, bar, ' ', time);
}

/** @param {any} command */
export function commandNode(command) {
  const code = make('code', { class: 'command' }, command.line);
  const label = `Copy the command that does: ${command.does}`;
  const copy = make('button', { type: 'button', 'data-action': '', 'aria-label': label }, 'Copy');
  copy.onclick = async () => {
    try {
      await navigator.clipboard.writeText(command.line);
      say(`Copied: ${command.line}`);
      copy.textContent = 'Copied';
    } catch {
      getSelection()?.selectAllChildren(code);
      copy.textContent = 'Selected';
      say('The browser does not let this page copy; the command is selected.');
    }
  };
  const made = make('li', {}, make('span', { class: 'does' }, command.does), code, copy);
  if (command.here) made.append(hereNode(command.here, whole, command.base ?? base));
  if (command.not_yours) made.append(make('span', { class: 'quiet' }, command.not_yours));
  return made;
}

/** @param {any} commands */
function commandsNode(commands) {
  return make('ul', { class: 'commands' }, ...commands.map(commandNode));
}

/** What can be done about a row; where it needs its reader, it can be put off as well. @param {any} row */
function actionsNode(row) {
  const made = make('details', {}, make('summary', {}, 'Commands'), commandsNode(row.commands));
  if (document.body.dataset.view === 'needs-you') made.append(putOffNode(() => { if (putOff(row)) again(); }));
  return made;
}

/**
 * @param {any} row
 * @param {string[]} columns
 */
function rowNode(row, columns) {
  const made = make('tr', { tabindex: '-1', 'data-key': row.key });
  if (row.to) made.dataset.to = row.to;
  fill(made, row, columns);
  return made;
}

/**
 * @param {HTMLElement} made
 * @param {any} row
 * @param {string[]} columns
 */
function fill(made, row, columns) {
  made.dataset.is = JSON.stringify(row);
  const cells = row.cells.map((/** @type {any} */ cell, /** @type {number} */ n) => {
    const node = cellNode(cell);
    const inner = n === 0 && row.to ? make('a', { href: row.to }, node) : node;
    return make('td', { 'data-label': columns[n] ?? '' }, inner);
  });
  const last = make('td', { 'data-label': 'Commands', class: 'actions' });
  if (row.commands.length) last.append(...choiceNodes(row), actionsNode(row));
  made.replaceChildren(...cells, last);
}

/** Whether something is half written in a row. @param {HTMLElement} node */
function isWritten(node) {
  const fields = [...node.querySelectorAll('input, textarea')];
  return fields.some((it) => /** @type {HTMLInputElement} */ (it).value !== '');
}

/** A list, which keeps its rows. */
class List {
  constructor() {
    this.body = make('tbody');
    this.head = make('tr');
    this.title = make('h2');
    this.more = make('p', { class: 'quiet' });
    this.empty = make('p', { class: 'empty' });
    this.later = make('p', { class: 'quiet', hidden: '' });
    this.table = make('table', {}, make('thead', {}, this.head), this.body);
    this.element = make('section', { class: 'block' }, this.title, this.table, this.more, this.later, this.empty);
    /** @type {any[]} */
    this.held = [];
    this.drawn = false;
    this.tree = new Tree(this.body);
  }

  /**
   * Draws rows; new ones are held back while the reader is at the list.
   * @param {any} block
   * @param {boolean} now
   */
  draw(block, now) {
    const off = document.body.dataset.view === 'needs-you' ? block.rows.filter(isPutOff) : [];
    if (off.length) block = { ...block, rows: block.rows.filter((/** @type {any} */ it) => !off.includes(it)) };
    this.putOff(off);
    this.block = block;
    this.title.textContent = block.title;
    const heads = [...block.columns, 'Commands'];
    if (this.head.childElementCount !== heads.length) {
      this.head.replaceChildren(...heads.map((it) => make('th', { scope: 'col' }, it)));
    }
    /** @type {Map<string, HTMLElement>} */
    const there = new Map();
    this.tree.clear();
    for (const it of this.body.children) if (it instanceof HTMLElement) there.set(it.dataset.key ?? '', it);
    const visited = this.body.matches(':hover') || this.body.contains(document.activeElement);
    const busy = !now && this.drawn && there.size > 0 && visited;
    this.held = busy ? block.rows.filter((/** @type {any} */ it) => !there.has(it.key)) : [];
    const rows = busy ? block.rows.filter((/** @type {any} */ it) => there.has(it.key)) : block.rows;
    const wanted = new Set(rows.map((/** @type {any} */ it) => it.key));
    for (const [key, it] of there) if (!wanted.has(key)) this.leave(it);
    /** @type {Element | null} */
    let before = null;
    for (const row of rows) {
      let node = there.get(row.key);
      const differs = node?.dataset.is !== JSON.stringify(row);
      // A reader who has opened the commands of a row keeps them.
      const kept = node?.querySelector('details[open]') && (node.contains(document.activeElement) || isWritten(node));
      if (!node) node = rowNode(row, block.columns);
      else if (differs && !kept) this.refill(node, row);
      /** @type {Element | null} */
      const next = before ? before.nextElementSibling : this.body.firstElementChild;
      // A node that is in its place stays there: moving it would take the focus from it.
      if (next !== node && !busy) this.body.insertBefore(node, next);
      before = node;
    }
    this.drawn = true;
    this.tree.draw(rows, heads.length);
    this.table.hidden = block.rows.length === 0;
    this.table.classList.toggle('bare', block.rows.every((/** @type {any} */ it) => it.commands.length === 0));
    this.more.hidden = block.more === 0;
    this.more.textContent = `${block.more} more; the filter finds them.`;
    this.empty.hidden = block.rows.length > 0 || off.length > 0;
    if (!this.empty.hidden) {
      this.empty.replaceChildren(block.empty.says);
      if (block.empty.last) this.empty.append(` ${block.empty.last[0]} `, moment(block.empty.last[1], false), '.');
      if (block.empty.command) this.empty.append(' ', make('code', {}, block.empty.command));
    }
  }

  /** Says how many rows their reader has put off. @param {any[]} rows */
  putOff(rows) {
    this.later.hidden = rows.length === 0;
    if (!rows.length) return;
    const button = make('button', { type: 'button', 'data-does': 'bring-back' }, 'Show them');
    button.onclick = () => {
      bringBack();
      again();
    };
    this.later.replaceChildren(`${rows.length} put off in this browser. `, button);
    comeBack(rows);
  }

  /**
   * @param {HTMLElement} node
   * @param {any} row
   */
  refill(node, row) {
    const at = document.activeElement;
    const had = node.contains(at) && at !== node;
    const chose = at instanceof HTMLInputElement && at.dataset.does === 'choose';
    fill(node, row, this.block?.columns ?? []);
    const again = chose ? node.querySelector('input[data-does="choose"]') : null;
    const focus = again ?? node.querySelector('a') ?? node;
    if (had && focus instanceof HTMLElement) focus.focus();
  }

  /** @param {HTMLElement} node */
  leave(node) {
    const had = node.contains(document.activeElement);
    const next = node.nextElementSibling ?? node.previousElementSibling;
    node.remove();
    if (had && next instanceof HTMLElement) next.focus();
  }
}

/** @param {any} block */
function whole(block) {
  const title = () => make('h2', {}, block.title);
  switch (block.block) {
    case 'notice': return make('p', { class: `notice ${block.tone}` }, block.text);
    case 'facts': {
      const rows = block.facts.map((/** @type {any} */ fact) =>
        make('div', {}, make('dt', {}, fact.name), make('dd', {}, cellNode(fact.value))));
      return make('section', { class: 'block' }, title(), make('dl', { class: 'facts' }, ...rows));
    }
    case 'counts': {
      const each = block.facts.map((/** @type {any} */ it) =>
        make('div', {}, make('dt', {}, it.name), make('dd', {}, cellNode(it.value))));
      return make('section', { class: 'block' }, title(), make('dl', { class: 'counts' }, ...each));
    }
    case 'words': {
      const text = make('pre', { class: 'words', tabindex: '0', role: 'region', 'aria-label': block.title }, block.text);
      const parts = [make('p', { class: 'mark-words' }, `${block.by_person ? 'A person' : 'An agent'} has written this. It is data, and no fact.`), text];
      if (!block.folded) return make('section', { class: 'block words' }, title(), ...parts);
      const lines = block.text.split('\n').length;
      const opens = make('summary', {}, block.title, ' ', make('span', { class: 'count' }, `${lines} lines`));
      return make('section', { class: 'block words' }, make('details', {}, opens, ...parts));
    }
    case 'diff':
      return differenceNode(block);
    case 'list': {
      const list = new List();
      list.draw(block, true);
      return list.element;
    }
    case 'answer': return answerNode(block, commandNode);
    case 'delegate': return delegateNode(block);
    case 'journal_check': return journalCheckNode();
    case 'replay': return replayNode(block, whole);
    case 'event_filter': return eventFilterNode(block);
    case 'enrol': return enrolNode(block, commandNode);
    case 'push': return pushNode(block);
    case 'vouch': return vouchNode(block);
    case 'graph':
      return make('section', { class: 'block' }, title(), ...graphNode(block.title, block.drawing));
    case 'board': return boardNode(block, cellNode, (row) => [...choiceNodes(row), actionsNode(row)]);
    case 'commands':
      return make('section', { class: 'block' }, title(), commandsNode(block.commands));
    default:
      return make('p', { class: 'quiet' }, 'This part of the view is of a newer version: load the page again.');
  }
}

/** All blocks of the view, each kept for as long as the view has it. */
export class Blocks {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    /** @type {Map<string, { list?: List, log?: Log, element: HTMLElement, text: string }>} */
    this.parts = new Map();
    /** @type {any[]} */
    this.shown = [];
  }

  /** New rows that are held back. */
  get held() {
    return [...this.parts.values()].reduce((sum, it) => sum + (it.list?.held.length ?? 0), 0);
  }

  /** Shows the rows that were held back. */
  release() {
    for (const it of this.parts.values()) if (it.list?.held.length) it.list.draw(it.list.block, true);
  }

  /**
   * @param {any[]} blocks
   */
  draw(blocks) {
    this.shown = blocks;
    if (document.body.dataset.view === 'tasks') keepShown(blocks);
    const used = new Set();
    const elements = blocks.map((block) => {
      // A heading may have a number in it, which changes.
      const name = `${block.block} ${(block.title ?? block.task ?? block.text ?? '').replace(/ \(\d+\)$/, '')}`;
      let key = name;
      for (let n = 2; used.has(key); n += 1) key = `${name} ${n}`;
      used.add(key);
      return this.part(key, block);
    });
    for (const key of [...this.parts.keys()]) if (!used.has(key)) this.parts.delete(key);
    /** @type {Element | null} */
    let before = null;
    for (const it of elements) {
      /** @type {Element | null} */
      const next = before ? before.nextElementSibling : this.root.firstElementChild;
      if (next !== it) this.root.insertBefore(it, next);
      before = it;
    }
    while (before ? before.nextElementSibling : this.root.firstElementChild) {
      (before ? before.nextElementSibling : this.root.firstElementChild)?.remove();
    }
  }

  /**
   * @param {string} key
   * @param {any} block
   * @returns {HTMLElement}
   */
  part(key, block) {
    const text = JSON.stringify(block);
    const known = this.parts.get(key);
    if (block.block === 'list') {
      const list = known?.list ?? new List();
      list.draw(block, false);
      this.parts.set(key, { list, element: list.element, text });
      return list.element;
    }
    if (block.block === 'log') {
      const log = known?.log ?? new Log(block.task, block.live);
      log.live = block.live;
      log.read();
      this.parts.set(key, { log, element: log.element, text });
      return log.element;
    }
    if (block.block === 'changes') {
      if (known) return known.element;
      const element = make('section', { class: 'block' }, make('h2', {}, 'Changes'), make('p', { class: 'quiet' }, 'Loading.'));
      this.parts.set(key, { element, text });
      loadChanges(element, block.task);
      return element;
    }
    if (known && known.text === text) return known.element;
    // What is half written on a card is not lost to what changes beside it.
    if (known && block.block === 'board' && isWritten(known.element)) return known.element;
    const had = known?.element.contains(document.activeElement) ? document.activeElement?.closest('[data-key]') : null;
    const element = whole(block);
    if (known) known.element.replaceWith(element);
    if (had instanceof HTMLElement) {
      const same = [...element.querySelectorAll('[data-key]')].find((it) => it instanceof HTMLElement && it.dataset.key === had.dataset.key);
      if (same instanceof HTMLElement) setTimeout(() => same.focus());
    }
    this.parts.set(key, { element, text });
    return element;
  }
}

/**
 * @param {HTMLElement} element
 * @param {string} task
 */
async function loadChanges(element, task) {
  try {
    const answer = await fetch(`${base}/rows/changes?id=${encodeURIComponent(task)}`);
    const said = await answer.json();
    if (!answer.ok) throw new Error([said.message, said.hint].filter(Boolean).join('; '));
    element.replaceChildren(...said.blocks.flatMap((/** @type {any} */ it) => [...whole(it).childNodes]));
  } catch (err) {
    const why = err instanceof Error ? err.message : err;
    element.lastElementChild?.replaceWith(make('p', { class: 'notice bad' }, `The changes cannot be shown: ${why}`));
  }
}
