// @ts-check
// Has the daemon check the whole journal: how far it has come, and what it has found. The check reads, and changes nothing.

import { make, say } from './dom.js';
import { base } from './place.js';
import { moment } from './time.js';

/** How long the daemon may hold an answer back, in milliseconds. A browser has six connections for all tabs. */
const WAIT = 400;

/** @param {string} query @returns {Promise<any>} */
async function ask(query) {
  const answer = await fetch(`${base}/rows/journal-check?${query}`);
  const said = await answer.json();
  if (!answer.ok) throw new Error([said.message ?? said.error, said.hint].filter(Boolean).join('; try: '));
  return said;
}

/** @param {number} number */
const written = (number) => number.toLocaleString();

/** What was found. @param {any} found @returns {Node[]} */
function foundNodes(found) {
  const made = [make('p', { class: `notice ${found.ok ? 'good' : 'bad'}` }, found.says, ' ', moment(found.at, false))];
  const rows = [];
  const row = (/** @type {string} */ name, /** @type {string | Node} */ value) => {
    rows.push(make('div', {}, make('dt', {}, name), make('dd', {}, value)));
  };
  if (found.events) row('events checked', written(found.events));
  if (found.anchor) row('anchor of its end', make('code', {}, found.anchor));
  if (found.events) row('signatures of passkeys that hold', written(found.signed));
  if (found.without_key) row('signatures that cannot be checked', `${written(found.without_key)}: the events with their passkeys’ keys were pruned`);
  if (found.unvouched) row('passkeys that no known one has signed for', `${written(found.unvouched)}: look at Passkeys`);
  if (found.first_bad) row('first event that is wrong', make('a', { href: `${base}/e/${found.first_bad}` }, String(found.first_bad)));
  if (rows.length) made.push(make('dl', { class: 'facts' }, ...rows));
  return made;
}

/** Where the journal is checked. */
export function journalCheckNode() {
  const button = /** @type {HTMLButtonElement} */ (
    make('button', { type: 'button', 'data-action': '', 'data-does': 'check-journal' }, 'Check the whole journal')
  );
  const bar = /** @type {HTMLProgressElement} */ (make('progress', { max: '1', 'aria-label': 'Checked events' }));
  const line = make('span', { class: 'quiet' });
  const going = make('p', { class: 'checking', hidden: '' }, bar, ' ', line);
  const result = make('div', { role: 'status' });
  const check = async () => {
    result.replaceChildren();
    going.hidden = false;
    let told = await ask(`wait_ms=${WAIT}`);
    while (!told.found) {
      // The journal grows while it is checked.
      bar.max = Math.max(told.last, told.checked, 1);
      bar.value = told.checked;
      line.textContent = `${written(told.checked)} of ${written(Math.max(told.last, told.checked))} events`;
      told = await ask(`check=${told.check}&wait_ms=${WAIT}`);
    }
    result.replaceChildren(...foundNodes(told.found));
    say(told.found.says);
  };
  button.onclick = async () => {
    button.disabled = true;
    try {
      await check();
    } catch (err) {
      const text = err instanceof TypeError ? 'The daemon does not answer; the check has ended.' : String(err instanceof Error ? err.message : err);
      result.replaceChildren(make('p', { class: 'notice bad' }, text));
    }
    going.hidden = true;
    button.disabled = document.body.dataset.live === 'stale';
  };
  return make('section', { class: 'block' }, make('h2', {}, 'Check of the journal'), make('p', {}, button), going, result);
}
