// @ts-check
// Which files of a difference the reader has viewed. The browser keeps that, by the digest of what was viewed: a file that changes is
// not viewed any more. It is for the reader alone, and no part of what is signed.

import { make } from './dom.js';
import { digest } from './sign.js';

const NAME = 'provost-viewed';

/** So many marks are kept, the newest. */
const KEPT = 1000;

/** What this browser keeps under a name; nothing where it keeps nothing. @param {string} name */
export function stored(name) {
  try {
    return localStorage.getItem(name) ?? '';
  } catch {
    return '';
  }
}

/** Keeps a text; without room for it, it is good for this document alone. @param {string} name @param {string} text */
export function store(name, text) {
  try {
    localStorage.setItem(name, text);
  } catch { /* The browser keeps nothing, which loses a mark. */ }
}

/** The digests of what was viewed, newest last. @returns {string[]} */
function kept() {
  try {
    const read = JSON.parse(stored(NAME));
    return Array.isArray(read) ? read.filter((it) => typeof it === 'string') : [];
  } catch {
    return [];
  }
}

/** @param {string} key @param {boolean} is_viewed */
function keep(key, is_viewed) {
  const others = kept().filter((it) => it !== key);
  store(NAME, JSON.stringify(is_viewed ? [...others, key].slice(-KEPT) : others));
}

/**
 * Where the reader marks a file of a difference as viewed; `told` hears of each change, and of a mark that was there before.
 * Nothing where this browser makes no digests.
 * @param {any} file
 * @param {(is_viewed: boolean) => void} told
 */
export async function viewedNode(file, told) {
  if (!globalThis.crypto?.subtle) return null;
  const lines = file.lines.map((/** @type {any} */ it) => [it.is, it.text]);
  const key = await digest(JSON.stringify([file.path, lines]));
  const box = /** @type {HTMLInputElement} */ (make('input', { type: 'checkbox', 'aria-label': `Viewed: ${file.path}` }));
  box.checked = kept().includes(key);
  if (box.checked) told(true);
  box.onchange = () => {
    keep(key, box.checked);
    told(box.checked);
  };
  return make('label', { class: 'viewed' }, box, ' Viewed');
}
