// @ts-check
// Answers by passkey: what is read of an approval, whether it has changed since, and the signature over exactly that.

import { make, say as aloud } from './dom.js';
import { base } from './place.js';
import { canSign, digest, inWords, ofThisHost, say } from './sign.js';

/** Told to the document when a view is to be asked for again. */
export const AGAIN = 'provost-again';

/**
 * What counts as read, of each approval of a repository: the digest of its text, and its lines.
 * @type {Map<string, { digest: string, lines: string[] }>}
 */
const read = new Map();

/** Has the view asked for again. */
export const again = () => document.dispatchEvent(new Event(AGAIN));

/** What the blocks of an approval say, as lines that can be compared. @param {any[]} blocks @returns {string[]} */
function lines(blocks) {
  return blocks.flatMap((block) => {
    if (block.block === 'facts') {
      return block.facts.map((/** @type {any} */ it) => `${it.name}: ${it.value.text ?? it.value.word ?? it.value.at ?? ''}`);
    }
    if (block.block === 'words') return block.text.split('\n');
    if (block.block === 'diff') {
      return block.files.flatMap((/** @type {any} */ file) => (
        file.lines.map((/** @type {any} */ it) => `${file.path}: ${it.is} ${it.text}`)
      ));
    }
    return [];
  });
}

/** @param {string[]} before @param {string[]} now */
function difference(before, now) {
  const [read, waits] = [new Set(before), new Set(now)];
  const gone = before.filter((it) => !waits.has(it)).map((text) => ({ is: 'remove', text }));
  const come = now.filter((it) => !read.has(it)).map((text) => ({ is: 'add', text }));
  const counts = { added: come.length, removed: gone.length, more: 0 };
  const file = { path: 'what you have read, and what waits now', lines: [...gone, ...come], ...counts };
  return { block: 'diff', title: 'What has changed', files: [file], is_change: true };
}

/**
 * The same block, whose links lead to the repository below this path. The text that is signed says nothing of where it is shown.
 * @param {any} block
 * @param {string} at
 */
function led(block, at) {
  if (block.block !== 'facts' || !at) return block;
  const facts = block.facts.map((/** @type {any} */ it) => (
    it.value.is === 'link' ? { ...it, value: { ...it.value, to: at + it.value.to } } : it
  ));
  return { ...block, facts };
}

/**
 * Puts the text that is signed in the place of the view: what is drawn of an approval is that text and nothing else.
 * @param {any} said
 * @param {string} at the path below which its repository is
 */
export async function unfold(said, at = base) {
  if (!said.seen) return said;
  const whole = JSON.parse(said.seen.text);
  const view = await digest(said.seen.text);
  const notices = said.blocks.filter((/** @type {any} */ it) => it.block === 'notice');
  const beside = said.blocks.filter((/** @type {any} */ it) => it.block !== 'notice');
  // Colours are places and no text: what is drawn has the text that is signed.
  const files = whole.blocks.find((/** @type {any} */ it) => it.block === 'diff')?.files ?? [];
  files.forEach((/** @type {any} */ file, /** @type {number} */ n) => { file.marks = said.marks?.[n]; });
  const now = { digest: view, lines: lines(whole.blocks) };
  const answer = beside.find((/** @type {any} */ it) => it.block === 'answer');
  const which = `${at} ${answer.approval}`;
  const known = read.get(which);
  if (!known) read.set(which, now);
  const changed = known !== undefined && known.digest !== view;
  Object.assign(answer, { view, shown: said.seen.shown, expires: whole.until, changed, at });
  if (changed) {
    const text = 'This request has changed while it was open. The buttons are off until you have read it again.';
    aloud(text);
    notices.unshift({ block: 'notice', tone: 'bad', text });
    notices.push(difference(known.lines, now.lines));
  }
  const { title, state, until } = whole;
  return { ...said, title, state, until, blocks: [...notices, ...whole.blocks.map((/** @type {any} */ it) => led(it, at)), ...beside] };
}

/** @param {any} block */
function readAgain(block) {
  const button = make('button', { type: 'button', 'data-does': 'read-again' }, 'I have read it again');
  button.onclick = () => {
    read.delete(`${block.at} ${block.approval}`);
    aloud('');
    again();
  };
  return make('p', {}, button);
}

/** Why no passkey signs at this page, though one counts. @param {any[]} signers @param {string} path */
export function notHere(signers, path) {
  if (!canSign()) return make('p', { class: 'notice waiting' }, 'This browser has no passkeys at this page.');
  if (ofThisHost(signers).length > 0) return null;
  const made = make('p', { class: 'notice waiting' }, `Your passkeys are for pages at ${signers[0].rp_id}`);
  const page = signers.find((it) => it.page)?.page;
  // It is a page of that daemon alone.
  const own = path.replace(/^\/r\/[0-9a-f]+/, '');
  if (page) made.append(': ', make('a', { href: page + own }, page + own));
  else made.append('; none of these is open.');
  return made;
}

/**
 * A button that has a passkey sign, and the line that says how it went; with `keeps`, the work has written the line itself.
 * @param {{ text: string, does: string, work: () => Promise<string | null>, line: HTMLElement, keeps?: boolean }} it
 */
export function signing({ text, does, work, line, keeps }) {
  const button = make('button', { type: 'button', 'data-action': '', 'data-does': does }, text);
  button.onclick = async () => {
    // Not `disabled`, which would take the focus away, and which the state of the connection decides.
    const form = button.closest('section') ?? button;
    if (form.getAttribute('aria-busy') === 'true') return;
    form.setAttribute('aria-busy', 'true');
    line.className = 'quiet';
    line.textContent = 'Your browser asks for your passkey.';
    try {
      const said = await work();
      if (!keeps) line.textContent = said ?? '';
      line.className = 'notice good';
    } catch (err) {
      line.textContent = inWords(err);
      line.className = 'notice bad';
      again();
    }
    form.setAttribute('aria-busy', 'false');
  };
  return button;
}

/** @param {any} block */
function form(block) {
  const kept = `provost-note-${block.at}-${block.approval}-${block.shown}`;
  const name = `note-${block.approval}`;
  const note = /** @type {HTMLTextAreaElement} */ (make('textarea', { id: name, rows: '2', autocomplete: 'off' }));
  // It comes back after a reload, and only for the same request.
  note.value = sessionStorage.getItem(kept) ?? '';
  note.oninput = () => sessionStorage.setItem(kept, note.value);
  const line = make('p', { class: 'quiet', role: 'status' });
  const answer = async (/** @type {boolean} */ grant) => {
    const text = note.value.trim().toWellFormed();
    if (!grant && !text) {
      note.focus();
      throw new Error('Say why: the asker is told, and learns from it.');
    }
    const bytes = new TextEncoder().encode(text).length;
    if (bytes > block.note_bytes_max) throw new Error(`The note has ${bytes} bytes; ${block.note_bytes_max} are the most.`);
    const { approval, view, shown, expires } = block;
    const word = { approval, expires, grant, note: text, scope: 'once', shown, view };
    const done = await say({ approval, grant, note: text, view }, word, block.daemon, block.at);
    sessionStorage.removeItem(kept);
    const what = done.failed ? `Approved, and not carried out: ${done.failed}.` : grant ? 'Approved.' : 'Denied.';
    aloud(what);
    again();
    return what;
  };
  const deny = signing({ text: 'Deny', does: 'deny', work: () => answer(false), line });
  const approve = signing({ text: 'Approve', does: 'approve', work: () => answer(true), line });
  const who = ofThisHost(block.signers).map((/** @type {any} */ it) => it.name).join(', ');
  return [
    make('label', { for: name }, 'Note for the asker; to deny, say why'), note,
    make('p', { class: 'answers' }, deny, approve),
    make('p', { class: 'quiet' }, `Signs for exactly what is shown here: ${who}.`), line,
  ];
}

/** Where a passkey answers an approval. @param {any} block @param {(command: any) => HTMLElement} command */
export function answerNode(block, command) {
  const made = make('section', { class: 'block answer' }, make('h2', {}, 'Answer with a passkey'));
  if (block.why_not) {
    made.append(make('p', { class: 'notice waiting' }, block.why_not));
    if (block.next) {
      const link = make('a', { href: `${block.at ?? base}/passkeys` }, 'Passkeys');
      made.append(make('ul', { class: 'commands' }, command(block.next)), make('p', {}, link));
    }
    return made;
  }
  const elsewhere = notHere(block.signers, `${block.at}/a/${block.approval}`);
  if (elsewhere) made.append(elsewhere);
  else if (block.changed) made.append(readAgain(block));
  else made.append(...form(block));
  return made;
}

/** The revocation of a passkey. @param {any} here @param {string} at */
export function revokeNode(here, at) {
  const elsewhere = notHere(here.signers, `${at}/passkeys`);
  if (elsewhere) return elsewhere;
  const line = make('p', { class: 'quiet', role: 'status' });
  const word = { revoke: here.passkey };
  const work = async () => {
    await say(word, word, here.daemon, at);
    aloud(`${here.name} counts no more.`);
    again();
    return `${here.name} counts no more.`;
  };
  const button = signing({ text: `Revoke ${here.name} by signature`, does: 'revoke', work, line });
  return make('section', { class: 'here' }, button, line);
}

/**
 * The whole of an approval within its row, with its answer.
 * @param {any} here
 * @param {(block: any) => HTMLElement} whole
 * @param {string} at
 */
export function inTheRow(here, whole, at) {
  const made = make('section', { class: 'here' });
  const attributes = { type: 'button', 'data-action': '', 'data-does': 'answer-here' };
  const button = make('button', attributes, 'Show the whole of it, and answer here');
  button.onclick = async () => {
    try {
      const answer = await fetch(`${at}/rows/approval?id=${here.approval}`);
      const said = await answer.json();
      if (!answer.ok) throw new Error([said.message, said.hint].filter(Boolean).join('; try: '));
      // What is shown from now on is what is read.
      read.delete(`${at} ${here.approval}`);
      const { blocks } = await unfold(said, at);
      // The commands stand beside it already.
      made.replaceChildren(...blocks.filter((/** @type {any} */ it) => it.block !== 'commands').map(whole));
      const first = made.querySelector('textarea, a, button');
      if (first instanceof HTMLElement) first.focus();
    } catch (err) {
      made.append(make('p', { class: 'notice bad' }, inWords(err)));
    }
  };
  made.append(button);
  return made;
}
