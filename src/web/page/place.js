// @ts-check
// Which repository a document is about: on the page over all repositories its address says it.

/** Whether this page is over all repositories. */
export const overAll = document.body.dataset.over === 'all';

/** The path below which the repository of this document is: nothing on a page of its own, or where the document is about all. */
export const base = overAll ? location.pathname.match(/^\/r\/[0-9a-f]+/)?.[0] ?? '' : '';

/** The repository of this document, if it is about one on the page over all. */
export const repository = base.slice('/r/'.length);

/** The path of this document on a page of its own. */
export const path = location.pathname.slice(base.length) || '/';

/**
 * The number of an event among those of what this document shows, by the cursor that came with it; `Infinity` where the document is
 * about all repositories, which have no number together.
 * @param {string} last
 */
export function numberOf(last) {
  if (!overAll) return Number(last) || Infinity;
  const own = last.split('~').find((it) => it.startsWith(`${repository}.`));
  return Number(own?.slice(repository.length + 1)) || Infinity;
}
