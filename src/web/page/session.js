// @ts-check
// Who reads: signs this browser in with a passkey or an invitation, and out again.

import { byId, make, say as aloud } from './dom.js';
import { overAll } from './place.js';
import { canSign, canonical, digest, assertion, inWords, post } from './sign.js';
import { enrolNode } from './enrol.js';

/**
 * @typedef {{
 *   signs_in: boolean, reader: string | null, ends_at: string | null, has_passkey: boolean, vouch: boolean,
 *   why_not: string | null, daemon: string
 * }} Who
 */

/** The verb that a passkey signs to sign in. */
const OPEN = 'open-web-session';

/** @type {Who} */
const EVERYONE = { signs_in: false, reader: null, ends_at: null, has_passkey: false, vouch: false, why_not: null, daemon: '' };

/** Who this browser is. @returns {Promise<Who>} */
export async function who() {
  // The page over all repositories signs no browser in, and shows what any of this machine may read.
  if (overAll) return EVERYONE;
  const answer = await fetch('/session');
  const said = await answer.json();
  if (!answer.ok) throw new Error([said.message ?? said.error, said.hint].filter(Boolean).join('; try: '));
  return said;
}

/** Opens the invitation that the address has behind its `#`, if it has one. It leaves the address at once. */
export async function redeem() {
  const invitation = /^#invite=([\w-]+)$/.exec(location.hash)?.[1];
  if (!invitation || overAll) return;
  history.replaceState(null, '', location.pathname + location.search);
  await post('/open-invitation', { invitation });
}

/** Has a passkey of this page sign in. */
async function signIn() {
  const begun = await post('/begin-session', {});
  const { origin, session, until } = begun.arguments;
  // Only what says that it signs this browser in at this very page is signed.
  if (origin !== location.origin || !/^[0-9a-f]{64}$/.test(session)) {
    throw new Error('The daemon asks for something else. Nothing was signed.');
  }
  const word = { verb: OPEN, arguments: await digest(canonical({ origin, session, until })) };
  const made = await assertion(begun.challenge, begun.daemon, word, begun.challenge.allow);
  await post('/open-session', { nonce: begun.challenge.nonce, assertion: made });
}

/** Signs this browser out. */
async function signOut() {
  await post('/sign-out', {});
  location.reload();
}

/** Says at the top who is signed in. @param {Who} me */
export function show(me) {
  const button = byId('sign-out');
  button.hidden = me.reader === null;
  button.title = me.reader === 'invited' ? 'Invited: states alone' : 'Signed in with a passkey';
  button.onclick = () => { void signOut().catch((err) => aloud(inWords(err))); };
  document.body.dataset.reader = me.reader ?? '';
}

/** What is shown to a browser that is not signed in. @param {Who} me @param {(command: any) => HTMLElement} command */
export function signInNode(me, command) {
  const made = make('section', { class: 'block answer' }, make('h2', {}, 'Sign in'));
  const line = make('p', { class: 'quiet', role: 'status' });
  if (!canSign()) {
    made.append(make('p', { class: 'notice waiting' }, 'This browser has no passkeys at this page.'));
  } else if (me.has_passkey) {
    const button = make('button', { type: 'button', 'data-does': 'sign-in' }, 'Sign in with a passkey');
    button.onclick = async () => {
      if (made.getAttribute('aria-busy') === 'true') return;
      made.setAttribute('aria-busy', 'true');
      line.className = 'quiet';
      line.textContent = 'Your browser asks for your passkey.';
      try {
        await signIn();
        location.reload();
      } catch (err) {
        line.className = 'notice bad';
        line.textContent = inWords(err);
      }
      made.setAttribute('aria-busy', 'false');
    };
    const text = 'What is shown here is for those who have signed in.';
    made.append(make('p', {}, text), make('p', { class: 'answers' }, button), line);
  } else {
    const none = `No passkey is enrolled for pages at ${location.hostname}.`;
    const text = `${none} One of another page does not sign here; enrol one of its own.`;
    made.append(make('p', { class: 'notice waiting' }, text));
  }
  const nodes = [made];
  if (!me.has_passkey) {
    const block = {
      why_not: me.why_not, code: { does: 'Print a code', line: 'provost passkey add' },
      vouch: me.vouch, daemon: me.daemon, signers: [],
    };
    nodes.push(enrolNode(block, command));
  }
  return nodes;
}
