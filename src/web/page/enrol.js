// @ts-check
// Enrols a passkey: with the code that a terminal has printed, and the signature of a known one where there is one.

import { make, say as aloud } from './dom.js';
import { AGAIN, notHere, signing } from './answer.js';
import { base } from './place.js';
import { canSign, enrol, enrolDigest, inWords, ofThisHost, vouchFor } from './sign.js';

/**
 * How the last enrolment goes, and where that is shown: the list of passkeys may change before its answer comes, and with it
 * the form.
 * @type {{
 *   text: string, tone: string, busy: boolean, go: (() => void) | null, line: HTMLElement | null, retry: HTMLElement | null
 * }}
 */
const last = { text: '', tone: 'quiet', line: null, retry: null, go: null, busy: false };

function show() {
  if (last.line) {
    last.line.textContent = last.text;
    last.line.className = last.tone;
  }
  if (last.retry) last.retry.hidden = last.go === null;
}

/** @param {string} text @param {string} tone */
function tell(text, tone = 'quiet') {
  Object.assign(last, { text, tone, go: null });
  show();
}

/** Waits until the person wants a signature to be asked for again. @param {string} why */
function again(why) {
  return new Promise((/** @type {(it: void) => void} */ go) => {
    Object.assign(last, { text: why, tone: 'notice bad', go });
    show();
    last.retry?.focus();
  });
}

/** @param {{ code: string, name: string, daemon: string, vouch: boolean, elsewhere: boolean }} wanted */
async function start(wanted) {
  if (last.busy && last.go === null) return;
  last.busy = true;
  try {
    if (!wanted.code.trim() || !wanted.name) throw new Error('Type the code, and a name for the passkey.');
    const done = await enrol(wanted, tell, again);
    if (done.held) {
      const pages = done.pages.map((/** @type {string} */ it) => `${it}/passkeys`).join(' or ');
      const where = pages || 'its page';
      const what = `${done.name} waits. Sign for it within ten minutes with a passkey that you have already`;
      const text = `${what}, at ${where}; there it has to have the same mark: ${done.enrol.slice(0, 12)}. Then load this page again.`;
      tell(text, 'notice waiting');
      aloud(last.text);
      last.busy = false;
      return;
    }
    tell(`${done.name} answers from now on.`, 'notice good');
    aloud(last.text);
    document.dispatchEvent(new Event(AGAIN));
  } catch (err) {
    tell(inWords(err), 'notice bad');
  }
  last.busy = false;
}

/** @param {string} id @param {string} text @param {Record<string, string>} attributes */
function field(id, text, attributes) {
  const input = /** @type {HTMLInputElement} */ (make('input', { id, autocomplete: 'off', spellcheck: 'false', ...attributes }));
  return { input, line: make('p', { class: 'field' }, make('label', { for: id }, text), input) };
}

/** Where a passkey is enrolled. @param {any} block @param {(command: any) => HTMLElement} command */
export function enrolNode(block, command) {
  const made = make('section', { class: 'block answer' }, make('h2', {}, 'Enrol a passkey'));
  const fail = block.why_not ?? (canSign() ? null : 'This browser has no passkeys at this page.');
  if (fail) {
    made.append(make('p', { class: 'notice waiting' }, fail));
    return made;
  }
  // None of this page's: the new one waits until one has signed at its own page.
  const elsewhere = block.vouch && ofThisHost(block.signers).length === 0;
  const code = field('code', 'The code', { maxlength: '40', autocapitalize: 'characters' });
  const name = field('passkey-name', 'A name for it, such as phone', { maxlength: '60' });
  const line = make('p', { role: 'status' });
  const retry = make('button', { type: 'button', 'data-does': 'sign-again' }, 'Sign once more');
  retry.onclick = () => {
    const go = last.go;
    last.go = null;
    show();
    go?.();
  };
  const button = make('button', { type: 'button', 'data-action': '', 'data-does': 'enrol' }, 'Enrol');
  button.onclick = () => start({
    code: code.input.value, name: name.input.value.trim(), daemon: block.daemon, vouch: block.vouch, elsewhere,
  });
  Object.assign(last, { line, retry });
  show();
  made.append(
    make('p', {}, 'Have a code printed at a terminal of your own, where no agent is at work:'),
    make('ul', { class: 'commands' }, command(block.code)),
    code.line, name.line, make('p', { class: 'answers' }, button, retry), line,
  );
  if (elsewhere) {
    const text = 'Your passkeys are for another page, where one of them has to sign for the new one.';
    made.append(make('p', { class: 'quiet' }, text));
  } else if (block.vouch) made.append(make('p', { class: 'quiet' }, 'A passkey that you have already signs for the new one.'));
  return made;
}

/** Where a known passkey signs for a new one of another page. @param {any} block */
export function vouchNode(block) {
  const made = make('section', { class: 'block answer' }, make('h2', {}, 'A new passkey waits'));
  made.append(make('p', {}, `${block.name}, for pages at ${block.host}, counts once one of your passkeys has signed for it.`));
  const elsewhere = notHere(block.signers, `${base}/passkeys`);
  if (elsewhere) {
    made.append(elsewhere);
    return made;
  }
  const mark = make('code', { id: 'mark' });
  // Of the key itself, as the page where it was made has computed it.
  const digest = enrolDigest(block.waiting);
  void digest.then((it) => { mark.textContent = it.slice(0, 12); });
  const line = make('p', { class: 'quiet', role: 'status' });
  const work = async () => {
    const done = await vouchFor(block.waiting, await digest, block.daemon);
    aloud(`${done.name} answers from now on.`);
    document.dispatchEvent(new Event(AGAIN));
    return `${done.name} answers from now on.`;
  };
  const button = signing({ text: `Sign for ${block.name}`, does: 'vouch', work, line });
  const compare = make('p', {}, 'The page where it was made shows the same mark, or it is not yours: ', mark);
  made.append(compare, make('p', { class: 'answers' }, button), line);
  return made;
}
