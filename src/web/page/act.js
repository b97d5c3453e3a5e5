// @ts-check
// Verbs that a passkey signs: each with exactly the arguments that are shown here, and what came of it is said.

import { make, say as aloud, told } from './dom.js';
import { base } from './place.js';
import { Fault, canonical, digest, inWords, ofThisHost, say } from './sign.js';
import { again, inTheRow, revokeNode, signing } from './answer.js';

/**
 * Has a passkey sign a verb, and tells what came of it.
 * @param {string} verb
 * @param {any} args
 * @param {string} at the path below which its repository is
 * @returns {Promise<any>}
 */
async function signVerb(verb, args, at) {
  // Lists do not say which passkeys there are.
  const answer = await fetch(`${at}/rows/passkeys`);
  const known = (await answer.json()).blocks?.find((/** @type {any} */ it) => it.block === 'enrol');
  if (!known || known.signers.length === 0) throw new Error('No passkey is enrolled: see Passkeys.');
  if (known.why_not && known.signers.length === 0) throw new Error(known.why_not);
  if (ofThisHost(known.signers).length === 0) throw new Error(`Your passkeys are for pages at ${known.signers[0].rp_id}.`);
  const word = { verb, arguments: await digest(canonical(args)) };
  const done = await say({ verb, arguments: args }, word, known.daemon, at);
  again();
  if (done.failed) throw new Fault(done.failed, 'failed');
  // The row that it was about may go with it.
  told(done.said ?? 'Done.');
  return done;
}

/**
 * What does the same as a command, by signature; `whole` draws a block.
 * @param {any} here
 * @param {(block: any) => HTMLElement} whole
 * @param {string} at the path below which its repository is
 */
export function hereNode(here, whole, at) {
  switch (here.is) {
    case 'revoke': return revokeNode(here, at);
    case 'verb': return verbNode(here, at);
    case 'write': return writeNode(here, whole, at);
    default: return inTheRow(here, whole, at);
  }
}

let fields = 0;

/** @type {Record<string, string>} */
const ASKS = {
  'answer-question': 'Write the answer.',
  'message-agents': 'Write what they are to read.',
  'say-to-task': 'Write what its agent is to hear.',
};

/** A verb of the own API, signed. @param {any} here @param {string} at */
export function verbNode(here, at) {
  const line = make('p', { class: 'quiet', role: 'status' });
  const name = `reason-${fields += 1}`;
  const asks = here.asks_text ? 'text' : here.asks_reason ? 'reason' : '';
  const most = { id: name, autocomplete: 'off', maxlength: here.asks_text ? '4000' : '400' };
  const field = /** @type {HTMLInputElement | HTMLTextAreaElement} */ (
    make(here.asks_text ? 'textarea' : 'input', here.asks_text ? { ...most, rows: '2' } : most)
  );
  const work = async () => {
    const typed = field.value.trim().toWellFormed();
    if (asks && !typed) {
      field.focus();
      throw new Error(here.asks_text ? ASKS[here.verb] ?? 'Write something.' : 'Say why: it is put on record.');
    }
    const done = await signVerb(here.verb, asks ? { ...here.arguments, [asks]: typed } : here.arguments, at);
    field.value = '';
    return done.said ?? 'Done.';
  };
  const to = Array.isArray(here.arguments.to) ? `To ${here.arguments.to.join(', ')}` : 'Words';
  const label = make('label', { for: name }, here.asks_text ? to : 'Why');
  const button = signing({ text: 'Do it with a passkey', does: here.verb, work, line });
  return make('section', { class: 'here' }, ...(asks ? [label, ' ', field, ' '] : []), button, line);
}

/**
 * An apply or an undo: what it would write is shown, and that is what is signed.
 * @param {any} here
 * @param {(block: any) => HTMLElement} whole
 * @param {string} at
 */
function writeNode(here, whole, at) {
  const made = make('section', { class: 'here' });
  const undoes = here.verb === 'undo';
  const attributes = { type: 'button', 'data-action': '', 'data-does': `show-${here.verb}` };
  const open = make('button', attributes, undoes ? 'Show what would come back' : 'Show what would be written');
  const line = make('p', { class: 'quiet', role: 'status' });
  const show = async () => {
    const query = new URLSearchParams(Object.entries(here.arguments).map(([name, it]) => [name, String(it)]));
    const answer = await fetch(`${at}/rows/would-write?${query}`);
    const said = await answer.json();
    if (!answer.ok) throw new Error([said.message, said.hint].filter(Boolean).join('; try: '));
    // What is drawn is this text and nothing else, and its digest is signed.
    const shown = JSON.parse(said.view);
    const seen = await digest(said.view);
    const work = async () => (await signVerb(here.verb, { ...here.arguments, seen }, at)).said ?? 'Done.';
    const text = undoes ? 'Bring this back with a passkey' : 'Write this with a passkey';
    const writes = shown.blocks.some((/** @type {any} */ it) => it.block === 'diff');
    const button = writes ? [signing({ text, does: here.verb, work, line })] : [];
    line.textContent = '';
    made.replaceChildren(...shown.blocks.map(whole), make('p', { class: 'answers' }, open, ...button), line);
    (button[0] ?? open).focus();
  };
  open.onclick = () => show().catch((err) => {
    line.className = 'notice bad';
    line.textContent = inWords(err);
  });
  made.append(open, line);
  return made;
}

/** What the rules say, in a sentence. @param {any} outcome */
function ruled(outcome) {
  const reason = outcome.reason ? `: ${outcome.reason}` : '';
  const by = outcome.by.length ? ` It is asked first; ${outcome.by.join(', ')} may answer.` : '';
  const says = { allow: 'allows it', approve: 'wants it approved', deny: 'denies it' }[/** @type {string} */ (outcome.decision)];
  return `Rule ${outcome.rule} ${says ?? outcome.decision}${reason}.${by}`;
}

/** Where a person hands out work: the rules are asked first, and their answer is part of what is signed. @param {any} block */
export function delegateNode(block) {
  const goal = /** @type {HTMLTextAreaElement} */ (make('textarea', { id: 'goal', rows: '3', autocomplete: 'off' }));
  const worker = /** @type {HTMLSelectElement} */ (make('select', { id: 'worker' }));
  worker.append(...block.workers.map((/** @type {string} */ it) => make('option', { value: it }, it)));
  const folder = /** @type {HTMLInputElement} */ (make('input', { id: 'folder', autocomplete: 'off', spellcheck: 'false' }));
  const minutes = /** @type {HTMLInputElement} */ (
    make('input', { id: 'minutes', type: 'number', min: '1', max: '1440', value: '30' })
  );
  const after = /** @type {HTMLInputElement} */ (make('input', { id: 'after', autocomplete: 'off', spellcheck: 'false' }));
  const priority = /** @type {HTMLSelectElement} */ (make('select', { id: 'priority' }));
  priority.append(...['normal', 'high', 'low'].map((it) => make('option', { value: it }, it)));
  const line = make('p', { class: 'quiet', role: 'status' });
  const says = make('p', { class: 'notice quiet', hidden: '' });
  const send = make('p', { class: 'answers' });
  const forget = () => {
    says.hidden = true;
    send.replaceChildren();
  };
  for (const it of [goal, worker, folder, minutes, after, priority]) it.oninput = forget;
  const ask = async () => {
    const text = goal.value.trim().toWellFormed();
    if (!text) {
      goal.focus();
      throw new Error('Write what is to be done.');
    }
    const bytes = new TextEncoder().encode(text).length;
    if (bytes > block.goal_bytes_max) throw new Error(`The goal has ${bytes} bytes; ${block.goal_bytes_max} are the most.`);
    const query = new URLSearchParams({ worker: worker.value, dir: folder.value.trim() });
    const answer = await fetch(`${base}/rows/would-delegate?${query}`);
    const said = await answer.json();
    if (!answer.ok) throw new Error([said.message, said.hint].filter(Boolean).join('; try: '));
    const { outcome } = said;
    says.textContent = ruled(outcome);
    says.hidden = false;
    line.textContent = '';
    send.replaceChildren();
    if (outcome.decision === 'deny') return;
    const args = {
      task: crypto.randomUUID(), goal: text, worker: worker.value, timeout_s: Math.max(1, Math.round(Number(minutes.value) || 30)) * 60,
      ...(folder.value.trim() ? { working_dir: folder.value.trim() } : {}),
      ...(after.value.trim() ? { after: after.value.trim().split(/[\s,]+/) } : {}),
      ...(priority.value === 'normal' ? {} : { priority: priority.value }),
      rules: { digest: said.digest, decision: outcome.decision, rule: outcome.rule },
    };
    const work = async () => {
      const done = await signVerb('delegate', args, base);
      goal.value = '';
      forget();
      const to = done.approval ? `/a/${done.approval}` : `/t/${done.task}`;
      line.replaceChildren(`${done.said} `, make('a', { href: base + to }, 'Look'));
      return null;
    };
    const button = signing({ text: 'Delegate with a passkey', does: 'delegate', work, line, keeps: true });
    send.append(button);
    button.focus();
  };
  const asks = make('button', { type: 'button', 'data-action': '', 'data-does': 'ask-rules' }, 'Ask the rules');
  asks.onclick = () => ask().catch((err) => {
    line.className = 'notice bad';
    line.textContent = inWords(err);
    aloud(line.textContent);
  });
  const row = (/** @type {string} */ id, /** @type {string} */ text, /** @type {HTMLElement} */ it) => (
    make('p', { class: 'field' }, make('label', { for: id }, text), it)
  );
  const form = make('details', {}, make('summary', {}, 'Hand out work'),
    row('goal', 'What is to be done', goal), row('worker', 'Worker', worker),
    row('folder', 'Folder, from the top of the repository; empty for the top', folder),
    row('minutes', 'Minutes that it may take', minutes),
    row('after', 'Tasks that have to succeed before it begins, by their ids; empty for none', after),
    row('priority', 'Priority among the tasks that wait', priority), make('p', {}, asks), says, send, line);
  return make('section', { class: 'block delegate' }, form);
}
