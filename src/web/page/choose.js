// @ts-check
// Tasks that a reader chooses, to cancel them together: what would end is listed, and exactly that is signed, once.

import { byId, make, say } from './dom.js';
import { base } from './place.js';
import { verbNode } from './act.js';

/** As many as one signature ends: the daemon takes no more. */
const MOST = 50;

/** What is chosen: the name of each task, and what it says in its row. @type {Map<string, string>} */
const chosen = new Map();

/** The task that a row lets its reader cancel; nothing where it does not. @param {any} row @returns {string} */
function cancels(row) {
  const here = row.commands.find((/** @type {any} */ it) => it.here?.is === 'verb' && it.here.verb === 'cancel-task')?.here;
  return here ? here.arguments.task : '';
}

/** What a row says of its task, in a line. @param {any} row */
function inShort(row) {
  const texts = row.cells.map((/** @type {any} */ it) => it.word ?? it.text ?? '');
  return texts.slice(0, 3).filter(Boolean).join(' · ');
}

/** The mark by which the task of a row is chosen, if it can be cancelled. @param {any} row @returns {HTMLElement[]} */
export function choiceNodes(row) {
  const task = document.body.dataset.view === 'tasks' ? cancels(row) : '';
  if (!task) return [];
  const box = /** @type {HTMLInputElement} */ (make('input', { type: 'checkbox', 'data-does': 'choose' }));
  box.checked = chosen.has(task);
  box.onchange = () => {
    if (box.checked && chosen.size >= MOST) {
      box.checked = false;
      say(`${MOST} tasks are the most that one signature ends.`);
      return;
    }
    if (box.checked) chosen.set(task, inShort(row));
    else chosen.delete(task);
    draw();
  };
  return [make('label', { class: 'choose' }, box, ' Choose')];
}

/** Forgets what is not shown any more, or cannot be cancelled any more. @param {any[]} blocks */
export function keepShown(blocks) {
  if (chosen.size === 0) return;
  const rows = blocks.flatMap((it) => it.rows ?? (it.columns ?? []).flatMap((/** @type {any} */ column) => column[1] ?? []));
  const there = new Map(rows.map((/** @type {any} */ row) => [cancels(row), inShort(row)]));
  let gone = 0;
  for (const task of [...chosen.keys()]) {
    const now = there.get(task);
    if (now) chosen.set(task, now);
    else gone += Number(chosen.delete(task));
  }
  draw();
  if (gone) say(`${gone} of the chosen tasks have ended, or are not shown any more.`);
}

/** What was drawn last: what is half written stays where nothing else is chosen. */
let drawn = '';

function draw() {
  const bar = byId('chosen');
  bar.hidden = chosen.size === 0;
  const text = JSON.stringify([...chosen]);
  if (text === drawn) return;
  drawn = text;
  if (chosen.size === 0) return void bar.replaceChildren();
  const none = make('button', { type: 'button', 'data-does': 'choose-none' }, 'Choose none');
  none.onclick = () => {
    chosen.clear();
    for (const it of document.querySelectorAll('input[data-does="choose"]')) /** @type {HTMLInputElement} */ (it).checked = false;
    draw();
  };
  const list = make('ul', {}, ...[...chosen.values()].map((it) => make('li', {}, it)));
  const here = { verb: 'cancel-tasks', arguments: { tasks: [...chosen.keys()] }, asks_reason: true, asks_text: false };
  const tasks = chosen.size === 1 ? '1 task is chosen' : `${chosen.size} tasks are chosen`;
  const was = bar.querySelector('input')?.value ?? '';
  bar.replaceChildren(
    make('h2', {}, tasks),
    make('details', { open: '' }, make('summary', {}, 'What would end'), list), verbNode(here, base), make('p', { class: 'answers' }, none),
  );
  const field = bar.querySelector('input');
  if (field) field.value = was;
  say(tasks);
}
