// @ts-check
// Says what became of an approval that leaves the list while its reader looks at it: who has answered it, when and how.

import { told } from './dom.js';
import { base } from './place.js';

/** The approvals that were in the list: its number, and the path below which its repository is. @type {Map<string, [string, string]>} */
let there = new Map();
let first = true;

/** @param {any[]} blocks */
function approvals(blocks) {
  const rows = blocks.flatMap((it) => (it.block === 'list' ? it.rows : []));
  const found = rows.flatMap((/** @type {any} */ row) => {
    const at = /^((?:\/r\/[0-9a-f]+)?)\/a\/(\d+)$/.exec(row.to ?? '');
    return at ? [[row.key, [at[2], at[1] || base]]] : [];
  });
  return new Map(/** @type {[string, [string, string]][]} */ (found));
}

/** Looks for those that have left since the last time. @param {any[]} blocks */
export function sayGone(blocks) {
  const now = approvals(blocks);
  const left = first ? [] : [...there].filter(([key]) => !now.has(key));
  there = now;
  first = false;
  if (left.length === 0) return;
  if (left.length > 1) return told(`${left.length} approvals do not wait any more: Audit says what became of them.`);
  const [, [id, at]] = left[0];
  tell(id, at).catch(() => { /* The mark at the top says that the daemon does not answer. */ });
}

/** @param {string} id @param {string} at */
async function tell(id, at) {
  const answer = await fetch(`${at}/rows/approval?id=${id}`);
  if (!answer.ok) return;
  const said = await answer.json();
  const why = said.blocks.find((/** @type {any} */ it) => it.block === 'notice')?.text;
  if (why) told(`Approval ${id}: ${why}`);
}
