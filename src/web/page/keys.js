// @ts-check
// Keys. Single letters do nothing in fields, and can be switched off.

import { byId, takesText } from './dom.js';

const OFF = 'provost-keys-off';

/** How long after `g` the next letter counts, in milliseconds. */
const SEQUENCE = 1500;

/** A row of a list, or a card of a board. */
const ROW = 'tr[data-key], article[data-key]';

/** @param {{ news: () => void, search: () => void, hold?: () => void, switchTo?: () => void }} to */
export function listen(to) {
  const dialog = /** @type {HTMLDialogElement} */ (byId('keys'));
  const off = /** @type {HTMLInputElement} */ (byId('keys-off'));
  off.checked = localStorage.getItem(OFF) === 'yes';
  off.onchange = () => localStorage.setItem(OFF, off.checked ? 'yes' : 'no');
  byId('keys-close').onclick = () => dialog.close();
  const find = /** @type {HTMLInputElement} */ (byId('keys-find'));
  find.oninput = () => findKeys(dialog, find.value);
  // A field that is not seen any more takes no key.
  dialog.onclose = () => find.blur();
  let gone = 0;
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = takesText(event.target) && event.target !== off;
    if (event.key === 'Escape') return escape(event, dialog);
    if (field || document.querySelector('dialog[open]')) return;
    const row = current();
    if (event.key === 'Enter') {
      if (row && document.activeElement === row && row.dataset.to) location.assign(row.dataset.to);
      return;
    }
    if (off.checked) return;
    if (Date.now() - gone < SEQUENCE) {
      gone = 0;
      const links = [...document.querySelectorAll('nav.views a')];
      const link = links.find((it) => it instanceof HTMLElement && it.dataset.key === event.key);
      if (link instanceof HTMLAnchorElement) location.assign(link.href);
      return;
    }
    const does = {
      g: () => { gone = Date.now(); },
      j: () => move(1),
      k: () => move(-1),
      o: () => { if (row?.dataset.to) location.assign(row.dataset.to); },
      n: to.news,
      r: reply(row) ?? to.switchTo,
      u: () => undo(row),
      p: to.hold,
      x: () => choose(row),
      s: () => { if (row?.querySelector('button[data-does="put-off"]')) press('put-off', row); },
      a: () => press('approve', row),
      d: () => press('deny', row),
      '.': () => commands(row),
      '/': () => {
        const field = document.getElementById('query');
        if (field) field.focus();
        else to.search();
      },
      '?': () => {
        find.value = '';
        findKeys(dialog, '');
        dialog.showModal();
        find.focus();
      },
    }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  });
}

/** Leaves the keys that have all of the typed words, in what they are or in what they do. @param {HTMLElement} dialog @param {string} typed */
function findKeys(dialog, typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  let left = 0;
  for (const it of dialog.querySelectorAll('dl > div')) {
    if (!(it instanceof HTMLElement)) continue;
    const text = [...it.children].map((part) => part.textContent).join(' ').toLowerCase();
    it.hidden = !words.every((word) => text.includes(word));
    left += it.hidden ? 0 : 1;
  }
  byId('keys-none').hidden = left > 0;
}

/** @returns {HTMLElement[]} */
const rows = () => [...document.querySelectorAll(ROW)].filter((it) => it instanceof HTMLElement && !it.hidden);

/** The row that has the focus. */
function current() {
  const it = document.activeElement?.closest(ROW);
  return it instanceof HTMLElement ? it : null;
}

/** @param {number} by */
function move(by) {
  const all = rows();
  const at = all.findIndex((it) => it === current());
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}

/**
 * Presses the button that answers the approval of the view or of the row; to deny without a reason leads to where it is written.
 * @param {string} does
 * @param {HTMLElement | null} row
 */
function press(does, row) {
  const button = (row ?? document).querySelector(`button[data-does="${does}"]`);
  if (button instanceof HTMLButtonElement) {
    button.scrollIntoView({ block: 'nearest' });
    // One in a part that is folded cannot have it.
    button.focus();
    button.click();
  } else if (row?.dataset.to?.match(/(^|\/)a\/\d+$/)) {
    location.assign(row.dataset.to);
  }
}

/**
 * What leads to the field in which its reader writes to the agent of a row, or answers it; nothing where there is none.
 * @param {HTMLElement | null} row
 */
function reply(row) {
  const field = row?.querySelector('.here textarea');
  if (!(field instanceof HTMLTextAreaElement)) return undefined;
  return () => {
    const details = field.closest('details');
    if (details) details.open = true;
    field.focus();
  };
}

/** Shows what an undo would bring back, in the row or in the view. @param {HTMLElement | null} row */
function undo(row) {
  const button = (row ?? document).querySelector('button[data-does="show-undo"]');
  if (!(button instanceof HTMLButtonElement)) return;
  const details = button.closest('details');
  if (details) details.open = true;
  press('show-undo', row);
}

/** Chooses the task of a row, or chooses it no more. @param {HTMLElement | null} row */
function choose(row) {
  const box = row?.querySelector('input[data-does="choose"]');
  if (box instanceof HTMLInputElement) box.click();
}

/** @param {HTMLElement | null} row */
function commands(row) {
  const details = row?.querySelector('details');
  if (!details) return;
  details.open = !details.open;
  details.querySelector('summary')?.focus();
}

/**
 * @param {KeyboardEvent} event
 * @param {HTMLDialogElement} dialog
 */
function escape(event, dialog) {
  if (dialog.open) return;
  const open = current()?.querySelector('details[open]');
  if (open instanceof HTMLDetailsElement) {
    open.open = false;
    current()?.focus();
  } else if (takesText(event.target)) {
    /** @type {HTMLElement} */ (event.target).blur();
  } else if (document.activeElement instanceof HTMLElement && document.activeElement !== document.body) {
    document.activeElement.blur();
  } else if (location.pathname !== '/' && history.length > 1) {
    history.back();
  }
}
