// @ts-check
// Elements made of text: all that comes from the daemon is put in as text, and never read as markup.

/**
 * The element of this id, which the document has.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the document has no ${id}`);
  return found;
}

/**
 * An element with this text or these children, and these attributes.
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {...(string | Node)} children
 * @returns {HTMLElement}
 */
export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * Says a sentence to a reader of the screen, and shows nothing.
 * @param {string} text
 */
export function say(text) {
  byId('said').textContent = text;
}

/**
 * Says above the view what came of something, for those who see and those who listen.
 * @param {string} text
 */
export function told(text) {
  const line = byId('outcome');
  line.hidden = false;
  line.textContent = text;
}

/**
 * Whether an element takes what is typed.
 * @param {EventTarget | null} target
 */
export function takesText(target) {
  return target instanceof Element && target.closest('input, textarea, select, [contenteditable]') !== null;
}
