// @ts-check
// Asks other rules what they would have decided of the newest requests. It changes nothing: rules are changed in their files.

import { make, say } from './dom.js';
import { base } from './place.js';

let forms = 0;

/**
 * Where a person asks other rules; `whole` draws a block.
 * @param {any} block
 * @param {(block: any) => HTMLElement} whole
 */
export function replayNode(block, whole) {
  const n = forms += 1;
  const which = /** @type {HTMLSelectElement} */ (make('select', { id: `rules-${n}`, 'data-does': 'choose-rules' }));
  which.append(...block.ready_made.map((/** @type {string} */ it) => make('option', { value: it }, `ready-made: ${it}`)));
  which.append(make('option', { value: '' }, 'those that are written below'));
  const text = /** @type {HTMLTextAreaElement} */ (
    make('textarea', { id: `rules-text-${n}`, rows: '8', autocomplete: 'off', spellcheck: 'false' })
  );
  const last = /** @type {HTMLInputElement} */ (
    make('input', { id: `rules-last-${n}`, type: 'number', min: '1', max: '10000', value: String(block.last) })
  );
  const line = make('p', { class: 'quiet', role: 'status' });
  const result = make('div');
  const button = /** @type {HTMLButtonElement} */ (
    make('button', { type: 'button', 'data-action': '', 'data-does': 'replay-rules' }, 'Ask these rules')
  );
  text.oninput = () => { which.value = ''; };
  const ask = async () => {
    if (!which.value && !text.value.trim()) {
      text.focus();
      throw new Error('Write the rules, as in a file.');
    }
    const rules = which.value ? { builtin: which.value } : { text: text.value.toWellFormed() };
    const body = JSON.stringify({ ...rules, last: Math.max(1, Math.round(Number(last.value) || block.last)) });
    const answer = await fetch(`${base}/replay-rules`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    const said = await answer.json();
    if (!answer.ok) throw new Error([said.message ?? said.error, said.hint].filter(Boolean).join('; try: '));
    result.replaceChildren(...said.blocks.map(whole));
    line.className = 'quiet';
    line.textContent = '';
    say(said.blocks[0].text);
  };
  button.onclick = async () => {
    button.disabled = true;
    try {
      await ask();
    } catch (err) {
      line.className = 'notice bad';
      line.textContent = err instanceof TypeError ? 'The daemon does not answer.' : String(err instanceof Error ? err.message : err);
      result.replaceChildren();
    }
    button.disabled = document.body.dataset.live === 'stale';
  };
  const row = (/** @type {string} */ id, /** @type {string} */ name, /** @type {HTMLElement} */ it) => (
    make('p', { class: 'field' }, make('label', { for: id }, name), it)
  );
  const form = make('details', {}, make('summary', {}, 'Ask other rules about what was decided'),
    make('p', { class: 'quiet' }, 'What would they have decided of the newest requests? Nothing changes by that: rules are changed in their files.'),
    row(which.id, 'Rules', which), row(text.id, 'Rules, as in policy.toml', text),
    row(last.id, 'Requests, from the newest back', last), make('p', {}, button), line, result);
  return make('section', { class: 'block delegate replay' }, form);
}
